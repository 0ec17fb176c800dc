import { describe, expect, it } from '@jest/globals';
import { describeFacts, errorFacts } from '../../src/agent-api/trouble';

function connectError(code: string, address: string): Error {
  const facts = { code, syscall: 'connect', address, port: 4010 };
  return Object.assign(new Error(`connect ${code} ${address}:4010`), facts);
}

describe('errorFacts', () => {
  it('names every address of an AggregateError', () => {
    const error = Object.assign(
      new AggregateError([connectError('ECONNREFUSED', '::1'), connectError('ETIMEDOUT', '127.0.0.1')]),
      { code: 'ECONNREFUSED' },
    );
    expect(errorFacts(error)).toEqual([
      { label: 'ECONNREFUSED', text: 'ECONNREFUSED [::1]:4010' },
      { label: 'ETIMEDOUT', text: 'ETIMEDOUT 127.0.0.1:4010' },
    ]);
    expect(describeFacts(errorFacts(error))).toBe('ECONNREFUSED [::1]:4010, ETIMEDOUT 127.0.0.1:4010');
  });

  it('ends where causes run in a circle', () => {
    const error = new Error('round and round');
    error.cause = error;
    expect(errorFacts(error)).toEqual([{ label: 'network error', text: 'round and round' }]);
  });

  it.each([
    ['a text', 'boom', 'network error', 'network error'],
    ['a code that could not be counted', { code: 'x y z' }, 'network error', 'network error'],
    ['a parser’s error without a code', { name: 'HTTPParserError' }, 'invalid http', 'invalid http'],
    ['a host', { code: 'ENOTFOUND', hostname: 'a.invalid' }, 'ENOTFOUND', 'ENOTFOUND a.invalid'],
    [
      'OpenSSL’s reason',
      { code: 'ERR_SSL_WRONG_VERSION_NUMBER', reason: 'wrong version number', message: '0:error:0A00010B' },
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'ERR_SSL_WRONG_VERSION_NUMBER: wrong version number',
    ],
  ])('makes a label and a phrase of %s', (_what, error, label, text) => {
    expect(errorFacts(error)).toEqual([{ label, text }]);
  });
});
