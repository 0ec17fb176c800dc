import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';

/**
 * In these folders, a file has the name of its subject, and the folder distinguishes the file from other files with the same
 * name.
 */
const DISTINGUISHING_FOLDERS = ['batch', 'commands', 'entries', 'render'];

function nameOf(file: string): string {
  const name = path.basename(file, '.ts');
  const folder = path.basename(path.dirname(file));
  return name === 'index' || DISTINGUISHING_FOLDERS.includes(folder) ? `${folder}/${name}` : name;
}

it.each(['src', 'sandbox', 'tools'])('no two files in %s have the same name', (folder) => {
  const entries = readdirSync(path.join(__dirname, '..', folder), { recursive: true, encoding: 'utf8' });
  const names = entries.filter((file) => file.endsWith('.ts')).map(nameOf);
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name, index) => names.indexOf(name) < index)).toEqual([]);
});
