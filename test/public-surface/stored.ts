import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The folder with the stored copy of the public surface. Only `npm run public-surface` writes these files. */
const FOLDER = path.join(__dirname, 'stored');

export const MANIFESTS = 'packages.json';

export function storedNames(): string[] {
  return readdirSync(FOLDER).sort();
}

export function readStored(name: string): string {
  return readFileSync(path.join(FOLDER, name), 'utf8');
}

export function writeStored(name: string, text: string): void {
  writeFileSync(path.join(FOLDER, name), text);
}

export function toJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
