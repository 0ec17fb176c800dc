import { describe, expect, it } from '@jest/globals';
import { describeFacts, errorFacts } from '../../../src/agent-api/error-facts';

function connectError(code: string, address: string): Error {
  return Object.assign(new Error(`connect ${code} ${address}:4010`), {
    code,
    syscall: 'connect',
    address,
    port: 4010,
  });
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

  it('looks through causes to the code', () => {
    const error = new TypeError('fetch failed', {
      cause: new Error('wrapped', { cause: connectError('EHOSTUNREACH', '10.0.0.1') }),
    });
    expect(errorFacts(error)).toEqual([{ label: 'EHOSTUNREACH', text: 'EHOSTUNREACH 10.0.0.1:4010' }]);
  });

  it('ends where causes run in a circle', () => {
    const error = new Error('round and round');
    error.cause = error;
    expect(errorFacts(error)).toEqual([{ label: 'network error', text: 'round and round' }]);
  });

  it('is short for a host of many addresses', () => {
    const errors = Array.from({ length: 50 }, (_, n) => connectError('ECONNREFUSED', `10.0.0.${n}`));
    expect(errorFacts(new AggregateError(errors))).toHaveLength(4);
  });

  it.each([
    ['a text', 'boom', { label: 'network error', text: 'network error' }],
    ['nothing', undefined, { label: 'network error', text: 'network error' }],
    [
      'a code that could not be counted',
      { code: 'x y z' },
      { label: 'network error', text: 'network error' },
    ],
    ['a number as code', { code: 7, message: 'seven' }, { label: 'network error', text: 'seven' }],
    [
      'a parser’s error without a code',
      { name: 'HTTPParserError' },
      { label: 'invalid http', text: 'invalid http' },
    ],
    [
      'a host',
      { code: 'ENOTFOUND', hostname: 'a.invalid' },
      { label: 'ENOTFOUND', text: 'ENOTFOUND a.invalid' },
    ],
    [
      'OpenSSL’s reason',
      { code: 'ERR_SSL_WRONG_VERSION_NUMBER', reason: 'wrong version number', message: '0:error:0A00010B' },
      { label: 'ERR_SSL_WRONG_VERSION_NUMBER', text: 'ERR_SSL_WRONG_VERSION_NUMBER: wrong version number' },
    ],
  ])('makes a label and a phrase of %s', (_what, error, fact) => {
    expect(errorFacts(error)).toEqual([fact]);
  });
});
