import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Writes an executable shell script and returns its path. */
export async function writeProgram(file: string, ...lines: string[]): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'));
  await chmod(file, 0o755);
  return file;
}

/** What `temporal --version` prints. */
export function versionLine(cli: string, server: string): string {
  return `temporal version ${cli} (Server ${server}, UI 2.50.1)`;
}

/** A program that prints a version as the Temporal CLI does, and can do no more. */
export async function writeTemporal(file: string, cli = '1.8.2', server = '1.31.2'): Promise<string> {
  return writeProgram(file, `echo '${versionLine(cli, server)}'`);
}
