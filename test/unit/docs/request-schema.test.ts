import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { requestSchema, SCHEMA_FILE } from '../../../scripts/request-docs';
import { checkRequest } from '../../../src/core/check-request';
import { MAX_ID_CHARACTERS, MAX_PROMPT_BYTES } from '../../../src/core/text';

const text = readFileSync(SCHEMA_FILE, 'utf8');
const published = z.fromJSONSchema(JSON.parse(text) as Parameters<typeof z.fromJSONSchema>[0]);

const minimal = { projectId: 'docs', jobId: 'job-1', prompt: 'Fix the links.' };

const good: [string, unknown][] = [
  ['the least', minimal],
  [
    'every field',
    {
      ...minimal,
      whenActive: 'wait',
      onUnknownDelivery: 'ask',
      deadline: '1.5h',
      reconcile: '0s',
      settle: '500ms',
      confirm: '1m',
      polling: { initial: '1s', growth: 0, maximum: '1d', jitter: 0.5, timerPolls: 'all' },
    },
  ],
  ['an empty polling', { ...minimal, polling: {} }],
  [
    'null for absent',
    { ...minimal, requestId: null, whenActive: null, deadline: null, polling: { growth: null } },
  ],
  ['null for polling', { ...minimal, polling: null }],
  ['an id of 128 characters', { ...minimal, jobId: 'x'.repeat(MAX_ID_CHARACTERS) }],
  ['ids with slashes, spaces and unicode', { ...minimal, projectId: 'a/b c', jobId: '日本語' }],
  ['an id of three dots', { ...minimal, jobId: '...' }],
  ['a prompt of many lines', { ...minimal, prompt: 'one\ntwo\n\u0000' }],
];

const bad: [string, unknown][] = [
  ['no object', 'a prompt'],
  ['null', null],
  ['an array', [minimal]],
  ['nothing in it', {}],
  ['no prompt', { projectId: 'docs', jobId: 'job-1' }],
  ['an empty prompt', { ...minimal, prompt: '' }],
  ['a prompt that is a number', { ...minimal, prompt: 7 }],
  ['a prompt that is too long', { ...minimal, prompt: 'x'.repeat(MAX_PROMPT_BYTES + 1) }],
  ['an empty id', { ...minimal, jobId: '' }],
  ['an id of one dot', { ...minimal, jobId: '.' }],
  ['an id of two dots', { ...minimal, projectId: '..' }],
  ['an id with a line break', { ...minimal, jobId: 'job\n1' }],
  ['an id with a C1 control character', { ...minimal, jobId: 'job\u0085' }],
  ['an id of 129 characters', { ...minimal, jobId: 'x'.repeat(MAX_ID_CHARACTERS + 1) }],
  ['an id that is null', { ...minimal, projectId: null }],
  ['an empty requestId', { ...minimal, requestId: '' }],
  ['an unknown field', { ...minimal, whenactive: 'wait' }],
  ['an unknown choice', { ...minimal, whenActive: 'maybe' }],
  ['a number for a duration', { ...minimal, deadline: 30 }],
  ['a duration without a unit', { ...minimal, deadline: '30' }],
  ['a duration with a space', { ...minimal, confirm: '30 s' }],
  ['a negative duration', { ...minimal, settle: '-1s' }],
  ['a duration in words', { ...minimal, reconcile: 'two minutes' }],
  ['polling as a duration', { ...minimal, polling: '5s' }],
  ['an unknown field of polling', { ...minimal, polling: { intial: '5s' } }],
  ['a growth of more than 10', { ...minimal, polling: { growth: 11 } }],
  ['a negative growth', { ...minimal, polling: { growth: -0.1 } }],
  ['a jitter of more than a half', { ...minimal, polling: { jitter: 0.6 } }],
  ['a part of a poll', { ...minimal, polling: { timerPolls: 2.5 } }],
  ['a number of polls in words', { ...minimal, polling: { timerPolls: 'six' } }],
  ['a jitter in a text', { ...minimal, polling: { jitter: '0.1' } }],
];

describe('docs/request.schema.json', () => {
  it.each(good)('takes %s, as the workflow does', (_name, input) => {
    expect(published.safeParse(input).success).toBe(true);
    expect(checkRequest(input, 'any-id')).toMatchObject({ ok: true });
  });

  it.each(bad)('refuses %s, as the workflow does', (_name, input) => {
    expect(published.safeParse(input).success).toBe(false);
    expect(checkRequest(input, 'any-id')).toMatchObject({ ok: false });
  });

  it('is made of the table of request fields', () => {
    // Run `npm run docs` after a change of the table.
    expect(JSON.parse(text)).toEqual(requestSchema());
  });
});
