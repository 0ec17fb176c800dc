import { expect, it } from '@jest/globals';
import Long from 'long';
import { readProtoField, toDate } from '../../src/temporal/proto-field';

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

it.each([
  [undefined, undefined],
  [null, undefined],
  [{}, '1970-01-01T00:00:00.000Z'],
  [{ seconds: 1_795_871_631, nanos: 887_999_999 }, '2026-11-28T13:13:51.887Z'],
  [{ seconds: Long.fromString('1795871631'), nanos: 0 }, '2026-11-28T13:13:51.000Z'],
])('the protobuf timestamp %j is the time %s', (timestamp, time) => {
  expect(toDate(timestamp)?.toISOString()).toBe(time);
});
