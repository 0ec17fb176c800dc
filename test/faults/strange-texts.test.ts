import { describe, expect, it } from '@jest/globals';
import type { FollowUpRequest } from '../../src/core/request';
import type { FaultSetting, NewJob } from '../../sandbox';
import { failureOf, type Following } from '../harness/following';
import { PATIENT, ProcessEnvironment } from '../harness/process-environment';

/** Some sixty follow-ups at once on one worker. It takes 10 to 40 s on two cores. */
const LIMIT_MS = 120_000;

/** A turn that outlasts what a busy worker needs until its first reads. */
const SEEN = { turn: { durationMs: 8_000 } } as const;

const FIELDS = [
  ...['id', 'status', 'prLink', 'model', 'createdAt', 'archivedAt', 'source', 'repository', 'ref'],
] as const;
const TEXTS = ['surrogate', 'controls', 'directions', 'huge', 'prototype', 'number', 'object'] as const;

interface Case {
  readonly name: string;
  readonly fault: FaultSetting;
  readonly asked?: Partial<FollowUpRequest>;
}

/** What became of one follow-up: its end, and what its history holds. */
interface Story {
  readonly name: string;
  readonly end: string;
  readonly strange: string[];
}

/** Follows up a job for each case, on one worker that must live through all of them. */
async function stories(cases: readonly Case[], job: NewJob = {}): Promise<Story[]> {
  const told: Story[] = [];
  await ProcessEnvironment.with({ sandbox: { messagesPerHour: null } }, async (environment) => {
    const worker = await environment.startWorker();
    const followings = await Promise.all(
      cases.map(async ({ fault, asked }) => {
        const { projectId, jobId } = environment.sandbox.addJob({ turn: { durationMs: 3_000 }, ...job });
        environment.sandbox.setFault({ ...fault, projectId, jobId });
        return environment.send({
          projectId,
          jobId,
          ...PATIENT,
          reconcile: '20s',
          settle: '100ms',
          ...asked,
        });
      }),
    );
    const ended = Promise.all(followings.map((following) => endOf(following)));
    const died = worker.exited.then(({ code, signal }) => {
      throw new Error(`the worker ended with ${signal ?? `exit code ${code}`}:\n${worker.stderr}`);
    });
    const ends = await Promise.race([ended, died]);
    died.catch(() => undefined);
    for (const [index, following] of followings.entries()) {
      const strange = strangeTexts(await textsOf(following));
      told.push({ name: cases[index]?.name ?? '', end: ends[index] ?? '', strange });
    }
  });
  return told;
}

async function endOf(following: Following): Promise<string> {
  return following.result().then(
    ({ status, followUp }) => `${status} by ${String(followUp.delivery.confirmedBy)}`,
    async () => (await failureOf(following.handle)).type,
  );
}

/** Every text in the payloads and failures of a history. */
async function textsOf({ handle }: Following): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value);
    else if (value instanceof Uint8Array) collectPayload(value);
    else if (value !== null && typeof value === 'object') {
      // A stack trace has lines.
      for (const [key, each] of Object.entries(value)) if (key !== 'stackTrace') collect(each);
    }
  };
  const collectPayload = (data: Uint8Array): void => {
    const text = Buffer.from(data).toString();
    try {
      collect(JSON.parse(text) as unknown);
    } catch {
      texts.push(text);
    }
  };
  collect(events);
  return texts;
}

/** Those that are not well-formed, or hold what moves a terminal's cursor or turns the direction of a text. */
function strangeTexts(texts: readonly string[]): string[] {
  return texts
    .filter((text) => !text.isWellFormed() || /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(text))
    .map((text) => JSON.stringify(text.slice(0, 100)));
}

function everyFieldAndText(operation: 'message' | 'get', times: number, asked?: Case['asked']): Case[] {
  return FIELDS.flatMap((field) =>
    TEXTS.map((text) => ({
      name: `${text} as ${field}`,
      fault: { name: 'strange-job', operation, times, parameters: { field, text } },
      ...(asked === undefined ? {} : { asked }),
    })),
  );
}

function goodEnd(end: string): (each: Case) => Story {
  return ({ name }) => ({ name, end, strange: [] });
}

describe('a worker lives, and the job comes back whole, when a service puts strange texts into', () => {
  it(
    'each field of the answer to the message',
    async () => {
      const cases = everyFieldAndText('message', 1);
      const found = await stories(cases, SEEN);
      for (const { name, end, strange } of found) {
        expect({ name, strange }).toEqual({ name, strange: [] });
        // An answer without the job's id and a status is no answer of the service: reading proves the delivery.
        expect(end).toMatch(/^completed by (response|read)$/);
      }
      expect(found).toHaveLength(cases.length);
    },
    LIMIT_MS,
  );

  it(
    'each field of the reads by timers, the look before the message included',
    async () => {
      const cases = everyFieldAndText('get', 3, { polling: { ...PATIENT.polling, timerPolls: 'all' } });
      expect(await stories(cases)).toEqual(cases.map(goodEnd('completed by response')));
    },
    LIMIT_MS,
  );

  it(
    'each field of the reads that go on by themselves',
    async () => {
      const polling = { ...PATIENT.polling, initial: '1s', maximum: '1s', timerPolls: 0 } as const;
      const cases = everyFieldAndText('get', 6, { polling }).map(({ fault, ...rest }) => ({
        ...rest,
        // The look, the first poll and one more are good.
        fault: { ...fault, skip: 3 },
      }));
      const job = { turn: { durationMs: 6_000 } };
      expect(await stories(cases, job)).toEqual(cases.map(goodEnd('completed by response')));
    },
    LIMIT_MS,
  );

  it(
    'the words and headers of errors on reads',
    async () => {
      const cases = TEXTS.flatMap((text) =>
        [302, 403, 404, 429, 503].map((code) => ({
          name: `${text} with ${code}`,
          fault: {
            name: 'strange-error',
            operation: 'get',
            skip: 1,
            times: 3,
            parameters: { text, code },
          } as const,
        })),
      );
      expect(await stories(cases)).toEqual(cases.map(goodEnd('completed by response')));
    },
    LIMIT_MS,
  );

  it(
    'the words and headers of errors on the message',
    async () => {
      const ends = {
        302: 'completed by read',
        400: 'FollowUpRejected',
        429: 'completed by response',
        503: 'completed by read',
      };
      const cases = TEXTS.flatMap((text) =>
        Object.entries(ends).map(([code, end]) => {
          const processed = end === 'completed by read' ? 'yes' : 'no';
          const parameters = { text, code, processed };
          const fault = { name: 'strange-error', operation: 'message', times: 1, parameters } as const;
          return { name: `${text} with ${code}`, fault, end };
        }),
      );
      expect(await stories(cases, SEEN)).toEqual(cases.map((each) => goodEnd(each.end)(each)));
    },
    LIMIT_MS,
  );
});
