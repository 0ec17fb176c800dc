import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';

const SRC = path.resolve(__dirname, '../../src');

/** Returns the lines in src that match the pattern, with their files. */
function linesWith(pattern: RegExp): string[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      readFileSync(path.join(SRC, file), 'utf8')
        .split('\n')
        .filter((line) => pattern.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
}

it('only the three functions in permits.ts make a send permit', () => {
  expect(linesWith(/\bas SendPermit\b/)).toEqual([
    'follow-up/permits.ts: return { kind, runId } as SendPermit;',
  ]);
  const makers = linesWith(/\bcreatePermit\('\w+', /).map((line) =>
    line.replace(/.*createPermit\('(\w+)'.*/, '$1'),
  );
  expect(makers).toEqual(['first', 'resend', 'operator']);
});

it('only the step send makes a POST, and every such step has a permit', () => {
  expect(linesWith(/\bdo: 'send'(?! \})/)).toEqual([
    "follow-up/next-step.ts: return { do: 'send', phase, at, permit, earlierBaseline: isFresh ? delivery.reads.baseline : null };",
    "follow-up/step.ts: readonly do: 'send';",
  ]);
});
