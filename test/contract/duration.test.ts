import { expect, it } from '@jest/globals';
import { formatDuration, parseDuration } from '../../src/contract/duration';

it.each<[(input: never) => unknown, string | number, unknown]>([
  [parseDuration, '500ms', { ms: 500 }],
  [parseDuration, '1.5s', { ms: 1_500 }],
  [parseDuration, '0s', { ms: 0 }],
  [parseDuration, '3650d', { ms: 3_650 * 86_400_000 }],
  [formatDuration, -5, '0ms'],
  [formatDuration, 59_999, '1m'],
  [formatDuration, 200_000, '3m 20s'],
  [formatDuration, 356_400_000, '4d 3h'],
])('%p converts %j to %j', (convert, input, expected) => {
  expect(convert(input as never)).toEqual(expected);
});

it.each([
  [parseDuration, [30, ' 30 '], 'needs a unit'],
  [parseDuration, ['', '30 s', '-30s', '1e3s', '٣s', null, ['30s']], '"30s"'],
  [parseDuration, ['3651d'], 'longer than 3650d'],
])(
  '%p rejects %j with a problem that has the text %j',
  (parse: (text: unknown) => object, texts, problem) => {
    for (const text of texts) expect(parse(text)).toEqual({ problem: expect.stringContaining(problem) });
  },
);
