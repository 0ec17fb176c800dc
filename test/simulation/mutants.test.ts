import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { mutants, without } from './mutants';

const SRC = path.resolve(__dirname, '../../src');

it.each(mutants())('“$rule” stands once in $file, so that it can be taken out', (mutant) => {
  expect(without(mutant, readFileSync(path.join(SRC, mutant.file), 'utf8'))).not.toBeNull();
});
