import { expect, it } from '@jest/globals';
import { checkSequences } from './property';

// property.long.test.ts checks 100,000 sequences.
it('in every sequence of events, each POST has a permit, and each result comes from a fresh read', () => {
  expect(checkSequences(400)).toMatchObject({ sequences: 400 });
});
