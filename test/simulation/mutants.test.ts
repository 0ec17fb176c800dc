import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { readMutants, applyMutant } from './mutants';

const SRC = path.resolve(__dirname, '../../src');

it.each(readMutants())('“$rule” stands once in $file, so that it can be taken out', (mutant) => {
  expect(applyMutant(mutant, readFileSync(path.join(SRC, mutant.file), 'utf8'))).not.toBeNull();
});
