import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';

/** The fields of a package that its users depend on. The value of the other fields is another test's subject, or has no promise. */
const PUBLIC_FIELDS = [
  'main',
  'types',
  'typesVersions',
  'bin',
  'exports',
  'engines',
  'peerDependencies',
  'peerDependenciesMeta',
];

/** Returns the public part of each release archive's package.json. @param folder the folder with the archives */
export function createPackageManifests(folder: string): object {
  const archives = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  const entries = archives.sort().map((file) => {
    const text = execFileSync('tar', ['-xOzf', path.join(folder, file), 'package/package.json'], {
      encoding: 'utf8',
    });
    const manifest = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const fields = PUBLIC_FIELDS.map((field) => [field, manifest[field]] as const);
    return [String(manifest.name), Object.fromEntries(fields)] as const;
  });
  return Object.fromEntries(entries);
}
