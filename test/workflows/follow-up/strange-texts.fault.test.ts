import { describe, expect, it, jest } from '@jest/globals';
import type { FollowUpRequest } from '../../../src/core/request';
import type { NewJob } from '../../../sandbox';
import type { Following, JobFault } from '../../harness/following';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';
import { eventsOf } from '../../harness/reset';

/** Some sixty follow-ups at once on one worker. It takes 10 to 40 s on two cores. */
jest.setTimeout(120_000);

/** A turn that outlasts what a busy worker needs until its first reads. */
const SEEN = { turn: { durationMs: 8_000 } } as const;

const FIELDS = ['id', 'status', 'prLink', 'model', 'createdAt', 'archivedAt', 'source', 'repository', 'ref'];
const TEXTS = ['surrogate', 'controls', 'directions', 'huge', 'prototype', 'number', 'object'];

interface Case {
  readonly name: string;
  readonly fault: JobFault;
}

/** How a follow-up ends in each case, with the strange texts in its history. One worker must live through all of them. */
async function stories(
  cases: readonly Case[],
  job: NewJob = { turn: { durationMs: 3_000 } },
  asked: Partial<FollowUpRequest> = {},
): Promise<string[]> {
  const told: string[] = [];
  await ProcessEnvironment.with({ sandbox: { messagesPerHour: null } }, async (environment) => {
    const worker = await environment.startWorker();
    const request = { ...PATIENT, reconcile: '20s', settle: '100ms', ...asked } as const;
    const followings = await Promise.all(cases.map(({ fault }) => environment.follow(job, request, fault)));
    const died = worker.exited.then(({ code, signal }) => {
      throw new Error(`the worker ended with ${signal ?? `exit code ${code}`}:\n${worker.stderr}`);
    });
    const ends = await Promise.race([Promise.all(followings.map(endOf)), died]);
    died.catch(() => undefined);
    for (const [index, { handle }] of followings.entries()) {
      const strange = strangeTexts(textsIn(await eventsOf(handle)));
      told.push([`${cases[index]?.name}: ${ends[index]}`, ...strange].join());
    }
  });
  return told;
}

async function endOf(following: Following): Promise<string> {
  const ending = await following.ending();
  return 'type' in ending ? ending.type : `${ending.status} by ${String(ending.delivery.confirmedBy)}`;
}

/** Every text in the payloads and failures of a history; a stack trace has lines. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value instanceof Uint8Array) {
    const text = Buffer.from(value).toString();
    try {
      return textsIn(JSON.parse(text));
    } catch {
      return [text];
    }
  }
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, each]) => (key === 'stackTrace' ? [] : textsIn(each)));
}

/** Those that are not well-formed, or hold what moves a terminal's cursor or turns the direction of a text. */
function strangeTexts(texts: readonly string[]): string[] {
  return texts
    .filter((text) => !text.isWellFormed() || /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(text))
    .map((text) => JSON.stringify(text.slice(0, 100)));
}

/** The first `skip` requests are good. */
function everyFieldAndText(operation: 'message' | 'get', times: number, skip = 0): Case[] {
  return FIELDS.flatMap((field) =>
    TEXTS.map((text) => ({
      name: `${text} as ${field}`,
      fault: { name: 'strange-job', operation, times, skip, parameters: { field, text } },
    })),
  );
}

/** Answers with strange words and headers instead of a job, or beside it where the message is processed. */
function everyError(codes: readonly number[], fault: Partial<JobFault>, processed = 'no') {
  return TEXTS.flatMap((text) =>
    codes.map((code) => ({
      name: `${text} with ${code}`,
      fault: { name: 'strange-error', ...fault, parameters: { text, code, processed } },
    })),
  );
}

function allEnd(cases: readonly Case[], end: string): string[] {
  return cases.map(({ name }) => `${name}: ${end}`);
}

describe('a worker lives, and the job comes back whole, when a service puts strange texts into', () => {
  it('each field of the answer to the message', async () => {
    const cases = everyFieldAndText('message', 1);
    const found = await stories(cases, SEEN);
    // An answer without the job's id and a status is no answer of the service: reading proves the delivery.
    const same = found.map((story) => story.replace(/(response|read)$/, 'either'));
    expect(same).toEqual(allEnd(cases, 'completed by either'));
  });

  it('each field of the reads by timers, the look before the message included', async () => {
    const cases = everyFieldAndText('get', 3);
    const polling = { ...PATIENT.polling, timerPolls: 'all' } as const;
    expect(await stories(cases, undefined, { polling })).toEqual(allEnd(cases, 'completed by response'));
  });

  it('each field of the reads that go on by themselves', async () => {
    const polling = { ...PATIENT.polling, initial: '1s', maximum: '1s', timerPolls: 0 } as const;
    // The look, the first poll and one more are good.
    const cases = everyFieldAndText('get', 6, 3);
    const job = { turn: { durationMs: 6_000 } };
    expect(await stories(cases, job, { polling })).toEqual(allEnd(cases, 'completed by response'));
  });

  it('the words and headers of errors on reads', async () => {
    const cases = everyError([302, 403, 404, 429, 503], { operation: 'get', skip: 1, times: 3 });
    expect(await stories(cases)).toEqual(allEnd(cases, 'completed by response'));
  });

  it('the words and headers of errors on the message', async () => {
    const once = { operation: 'message', times: 1 } as const;
    const byRead = everyError([302, 503], once, 'yes');
    const rejected = everyError([400], once);
    const again = everyError([429], once);
    expect(await stories([...byRead, ...rejected, ...again], SEEN)).toEqual([
      ...allEnd(byRead, 'completed by read'),
      ...allEnd(rejected, 'FollowUpRejected'),
      ...allEnd(again, 'completed by response'),
    ]);
  });
});
