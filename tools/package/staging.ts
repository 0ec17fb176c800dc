/** The folders in which the archives are made. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../..');
/** The path is constant, because the workflow bundle contains it, and the worker's archive contains the bundle. */
export const STAGING = path.join(ROOT, 'artifacts/staging');

/** The compiled `src`. */
export const COMPILED = path.join(STAGING, 'dist');

/** The compiled sandbox, with the modules of `src` that it imports. */
export const COMPILED_SANDBOX = path.join(STAGING, 'sandbox');

/** Runs a program. @returns its standard output */
export function run(command: string, args: readonly string[], cwd = ROOT): string {
  const options = { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
  return execFileSync(command, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
}

export function writeJson(file: string, content: object): void {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}
