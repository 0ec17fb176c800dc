import { expect, it } from '@jest/globals';
import { isUnimplemented } from '../../src/temporal/grpc-status';

const errorOf = (code: number, details: string) =>
  Object.assign(new Error(details), { code, details, metadata: {} });

it.each<[unknown, boolean]>([
  [errorOf(12, 'unknown method DescribeNamespace'), true],
  // gRPC maps the 404 page of a gateway to UNIMPLEMENTED, and the Rust core maps it to UNKNOWN.
  [errorOf(12, 'Received HTTP status code 404'), true],
  [errorOf(2, 'grpc-status header missing, mapped from HTTP status code 404'), true],
  [errorOf(14, 'Received HTTP status code 503'), false],
  [errorOf(5, 'namespace 404 not found'), false],
  [new Error('HTTP status code 404'), false],
])('%s states that a call does not exist: %s', (error, expected) => {
  expect(isUnimplemented(error)).toBe(expected);
});
