import { expect, it } from '@jest/globals';
import { readProtoField } from '../../src/temporal/proto-field';

it.each([
  ['', undefined],
  [0, undefined],
  [null, undefined],
  [undefined, undefined],
  ['run', 'run'],
  [3, 3],
])('the protobuf field %j has the value %j', (field: string | number | null | undefined, value) => {
  expect(readProtoField(field)).toBe(value);
});
