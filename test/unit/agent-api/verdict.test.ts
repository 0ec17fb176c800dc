import { describe, expect, it } from '@jest/globals';
import { errorFacts } from '../../../src/agent-api/error-facts';
import { proofOfFailure, proofOfStatus } from '../../../src/agent-api/verdict';

describe('what a status proves about a POST', () => {
  it.each([400, 401, 403, 404, 405, 409, 410, 413, 415, 422])('%i: rejected', (status) => {
    expect(proofOfStatus(status)).toBe('rejected');
  });

  it('429: not processed', () => {
    expect(proofOfStatus(429)).toBe('not processed');
  });

  it('everything else: unknown', () => {
    const certain = [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429];
    const others = Array.from({ length: 800 }, (_, n) => 200 + n).filter(
      (status) => !certain.includes(status),
    );
    expect(others.filter((status) => proofOfStatus(status) !== 'unknown')).toEqual([]);
  });
});

describe('what an error proves about a POST', () => {
  const codes = [
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ETIMEDOUT',
    'UND_ERR_CONNECT_TIMEOUT',
    'CERT_HAS_EXPIRED',
    'ECONNRESET',
    'EPIPE',
    'UND_ERR_SOCKET',
    'UND_ERR_HEADERS_TIMEOUT',
    'HPE_INVALID_CONSTANT',
  ];

  it.each(codes)('%s before the first byte: not sent, and worth another try', (code) => {
    expect(proofOfFailure(false, errorFacts({ code }))).toEqual({ verdict: 'not-sent', repeatable: true });
  });

  // A lost connection may be followed by one that is refused: the last code doesn't tell of the first connection.
  it.each(codes)('%s after the first byte: unknown', (code) => {
    expect(proofOfFailure(true, errorFacts({ code }))).toEqual({ verdict: 'unknown' });
  });

  it.each(['UND_ERR_INVALID_ARG', 'ERR_INVALID_URL', 'ERR_INVALID_CHAR', 'PROXY_REFUSED'])(
    '%s before the first byte: not sent, and no repetition heals it',
    (code) => {
      expect(proofOfFailure(false, errorFacts({ code }))).toEqual({ verdict: 'not-sent', repeatable: false });
    },
  );

  it('a limit of our own: not sent before the first byte, unknown after it', () => {
    expect(proofOfFailure(false, [])).toEqual({ verdict: 'not-sent', repeatable: true });
    expect(proofOfFailure(true, [])).toEqual({ verdict: 'unknown' });
  });
});
