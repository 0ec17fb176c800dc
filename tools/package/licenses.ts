/**
 * Checks the licenses of all packages that production installs: `npm run licenses`. The script reads the lock file and calls no registry.
 */
import { packages } from '../../package-lock.json';

interface Locked {
  readonly license?: string;
  readonly dev?: boolean;
}

/** Licenses that allow use and distribution in a closed-source service, at most with a copyright notice. */
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
  // The license of data about browsers (caniuse-lite), which webpack contains and the worker never uses.
  'CC-BY-4.0',
];

/** The packages whose manifest names no license, with the license of their LICENSE file. */
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
  process.stderr.write(
    `The licenses of these packages are not allowed. Remove the packages, or review the list in licenses.ts:\n${disallowed.join('\n')}\n`,
  );
  process.exitCode = 1;
}
