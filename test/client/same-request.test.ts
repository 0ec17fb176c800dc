import { expect, it } from '@jest/globals';
import { planOf } from '../../src/client/start';
import { digestOf } from '../../src/core/ids';
import { compareRequests } from '../../src/temporal/existing-run';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Fix it.', requestId: 'r' };
const POLLING = { initial: '1s', timerPolls: 'all' };
const DIFFERENT = [
  'whenActive is wait there, not send',
  'deadline is 2h there, not 1d',
  'polling.initial is 1s there, not 5s',
  'polling.timerPolls is all there, not 2',
];
const memo = (prompt: string) => ({ followUpPromptSha256: digestOf(prompt) });

it.each<[string, unknown, Record<string, unknown> | undefined, readonly string[] | 'another' | 'unknown']>([
  ['the same prompt', REQUEST, undefined, []],
  ['defaults written out', { ...REQUEST, deadline: '1440m', polling: { growth: 0.1 } }, undefined, []],
  [
    'other options',
    { ...REQUEST, deadline: '2h', whenActive: 'wait', polling: POLLING },
    undefined,
    DIFFERENT,
  ],
  ['almost the same prompt', { ...REQUEST, prompt: 'Fix it. ' }, undefined, 'another'],
  ['a state of its own', { continued: {} }, undefined, 'unknown'],
  ['no readable input', { prompt: 7 }, { followUpPromptSha256: 7 }, 'unknown'],
  ['no input', null, {}, 'unknown'],
  ['the digest in its memo', undefined, memo('Fix it.'), []],
  ['another digest in its memo', undefined, memo('Fix it'), 'another'],
])('a request is compared with the follow-up of its name, of which there is %s', (_, input, memo, found) => {
  const compared = { promptCompared: found !== 'unknown', differences: found === 'unknown' ? [] : found };
  expect(compareRequests(planOf(REQUEST), input, memo)).toEqual(found === 'another' ? null : compared);
});
