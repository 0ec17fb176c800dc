import { readdirSync } from 'node:fs';

/** The folder that has a folder for each version, with the files that `npm run record-release` has recorded. */
export const RELEASES = __dirname;

/** Returns the versions whose files are kept. */
export function recordedReleases(): string[] {
  return readdirSync(RELEASES).filter((name) => /^\d/.test(name));
}
