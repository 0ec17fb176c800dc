import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { RELEASES } from './releases';

it('every version from 1.0.0 on in CHANGELOG.md has its recorded histories and its recorded worker', () => {
  const changelog = readFileSync(path.join(RELEASES, '../../CHANGELOG.md'), 'utf8');
  const headings = changelog.matchAll(/^## \[([1-9]\d*\.\d+\.\d+)\]/gm);
  const files = [...headings].flatMap(([, version = '']) =>
    ['worker.tgz', 'histories/accepted.json'].map((file) => path.join(version, file)),
  );
  expect(files.filter((file) => !existsSync(path.join(RELEASES, file)))).toEqual([]);
});
