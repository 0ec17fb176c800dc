import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { errorFacts } from '../../src/agent-api/trouble';
import type { Body } from '../../src/agent-api/exchange';
import { parseRetryAfter, proofOfFailure, proofOfStatus, sendOutcome } from '../../src/agent-api/outcome';

it('what a status proves about a POST is a rejection, that it was not processed, or nothing', () => {
  const rejected = [400, 401, 403, 404, 405, 409, 410, 413, 415, 422];
  for (let status = 200; status < 1_000; status += 1) {
    const certain = status === 429 ? 'not processed' : 'unknown';
    expect([status, proofOfStatus(status)]).toEqual([
      status,
      rejected.includes(status) ? 'rejected' : certain,
    ]);
  }
});

it('no text of the service changes what its status proves about a POST', () => {
  const words = fc.string({ unit: 'grapheme', maxLength: 60 });
  const body = fc.oneof<fc.Arbitrary<Body>[]>(
    fc.record({ kind: fc.constant('text'), text: words }),
    fc.constant({ kind: 'html' }),
    fc.record({
      kind: fc.constant('json'),
      value: fc.oneof(
        words,
        fc.record({ error: words }),
        fc.record({ error: fc.record({ message: words }), detail: words }),
        fc.record({ id: fc.constant('another'), status: words }),
      ),
    }),
  );
  const answer = fc.record({ body, location: fc.option(words, { nil: undefined }) });
  fc.assert(
    fc.property(fc.integer({ min: 200, max: 999 }), answer, answer, (status, ...answers) => {
      const proofs = answers.map(({ body, location }) => {
        const headers = { location, retryAfter: undefined, date: undefined };
        const outcome = sendOutcome({ kind: 'answer', status, headers, body, brokenBy: [] }, 'job-1');
        return [outcome.verdict, 'repeatable' in outcome && outcome.repeatable];
      });
      expect(proofs[0]).toEqual(proofs[1]);
    }),
  );
});

describe('what an error proves about a POST', () => {
  it.each(['UND_ERR_INVALID_ARG', 'ERR_INVALID_URL', 'ERR_INVALID_CHAR', 'PROXY_CREDENTIALS'])(
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

describe('Retry-After', () => {
  // By the worker's clock, which may be wrong by years, it would be another wait.
  const NOW = 'Sun, 01 Mar 2026 12:00:00 GMT';

  it.each<[string | undefined, number | undefined]>([
    ['120', 120_000],
    ['1.5', 1_500],
    ['-5', 0],
    ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
    ['Sun Mar  1 12:00:30 2026', 30_000],
    ['2026-03-01T12:00:30Z', 30_000],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
    [undefined, undefined],
    ['', undefined],
    ['later 7', undefined],
    ['1e3', undefined],
    ['Sun, 99 Foo 2026 12:00:30 GMT', undefined],
  ])('%j is %j ms, by the time of its answer', (header, expected) => {
    expect(parseRetryAfter(header, NOW)).toBe(expected);
  });

  it.each([undefined, '', 'today'])('as a date says nothing where the answer tells no time: %j', (date) => {
    expect(parseRetryAfter('Sun, 01 Mar 2026 12:00:30 GMT', date)).toBeUndefined();
    expect(parseRetryAfter('30', date)).toBe(30_000);
  });

  it.each(['9'.repeat(400), '99999999999999999999', 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'an absurd one is a safe integer: %s',
    (header) => {
      const ms = parseRetryAfter(header, NOW);
      expect(Number.isSafeInteger(ms)).toBe(true);
      expect(ms).toBeGreaterThan(200_000_000_000_000);
    },
  );
});
