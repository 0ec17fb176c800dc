import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The version of the worker. Its package.json is two folders up from src/worker and dist/worker alike. */
export function workerVersion(): string {
  const file = path.join(__dirname, '../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
