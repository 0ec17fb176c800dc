/**
 * Checks the licences of everything that production installs: `npm run licenses`. It reads the lock file and asks no registry.
 */
import { packages } from '../../package-lock.json';

interface Locked {
  readonly license?: string;
  readonly dev?: boolean;
}

/** Licences that allow use and distribution in a closed service, with at most a notice. */
const ALLOWED = [
  ...[
    '0BSD',
    'Apache-2.0',
    'Apache-2.0 AND MIT',
    'BlueOak-1.0.0',
    'BSD-2-Clause',
    'BSD-3-Clause',
    'ISC',
    'MIT',
  ],
  ...['Unlicense'],
  // Data about browsers (caniuse-lite), which webpack carries and the worker never uses.
  'CC-BY-4.0',
];

/** Packages whose manifest names no licence, with the one that their LICENSE file has. */
const BY_LICENSE_FILE: Readonly<Record<string, string>> = { unionfs: 'Unlicense' };

const counts = new Map<string, number>();
const disallowed: string[] = [];
for (const [place, { license, dev }] of Object.entries(packages as Readonly<Record<string, Locked>>)) {
  if (place === '' || dev === true) continue;
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const found = license ?? BY_LICENSE_FILE[name] ?? 'none';
  counts.set(found, (counts.get(found) ?? 0) + 1);
  if (!ALLOWED.includes(found)) disallowed.push(`${name}: ${found}`);
}
for (const [license, count] of [...counts].sort()) process.stdout.write(`${count}\t${license}\n`);
if (disallowed.length > 0) {
  process.stderr.write(`not among the licences that are allowed:\n${disallowed.join('\n')}\n`);
  process.exitCode = 1;
}
