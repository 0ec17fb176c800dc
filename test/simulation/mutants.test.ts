import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { readMutants, applyMutant } from './mutants';

const SRC = path.resolve(__dirname, '../../src');

it.each(readMutants())('the code of the rule “$rule” occurs exactly once in $file', (mutant) => {
  expect(applyMutant(mutant, readFileSync(path.join(SRC, mutant.file), 'utf8'))).not.toBeNull();
});
