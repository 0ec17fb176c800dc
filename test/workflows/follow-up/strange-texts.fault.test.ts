import { expect, it } from '@jest/globals';
import type { JobFault } from '../../harness/follow-up-under-test';
import { WORKER_LOSS_OPTIONS, ProcessEnvironment } from '../../harness/process-environment';

const FIELDS = ['id', 'status', 'prLink', 'model', 'createdAt', 'archivedAt', 'source', 'repository', 'ref'];

/** A lone surrogate: the SDK's core ends the worker's process when it meets one in a completion (1.24, measured). */
const text = 'surrogate';

const BY_RESPONSE = 'completed by response';
const BY_READ = 'completed by read';

/** What is strange, and how the follow-up ends. */
type Case = readonly [fault: JobFault, end: string];

/** In each field of the answer to the message, of the reads by timers (the look included), and of those by one activity. */
const IN_JOBS = FIELDS.flatMap((field): Case[] => {
  const strange = { name: 'strange-job', parameters: { field, text } } as const;
  return [
    // An answer without the job's id is no answer of the service: reading proves the delivery.
    [{ ...strange, operation: 'message', times: 1 }, field === 'id' ? BY_READ : BY_RESPONSE],
    [{ ...strange, operation: 'get', times: 3 }, BY_RESPONSE],
    [{ ...strange, operation: 'get', skip: 4, times: 3 }, BY_RESPONSE],
  ];
});

/** In the words and headers of errors: of a read, or of the message, which was processed or not. */
const IN_ERRORS = (
  [
    ['get', 403, 'no', BY_RESPONSE],
    ['get', 429, 'no', BY_RESPONSE],
    ['get', 503, 'no', BY_RESPONSE],
    ['message', 302, 'yes', BY_READ],
    ['message', 503, 'yes', BY_READ],
    ['message', 400, 'no', 'FollowUpRejected'],
    ['message', 429, 'no', BY_RESPONSE],
  ] as const
).map(([operation, code, processed, end]): Case => {
  const when = operation === 'get' ? { skip: 1, times: 2 } : { times: 1 };
  return [{ name: 'strange-error', operation, ...when, parameters: { text, code, processed } }, end];
});

const UNLIMITED = { sandbox: { messagesPerHour: null }, env: { AGENT_API_TIMEOUT: '60s' } };

// Proves A11.
it('a worker lives, and the job comes back whole, when a service puts strange texts into each field and error', () =>
  // On a busy machine, no response may exceed the timeout, because a POST that timed out is confirmed by a read.
  ProcessEnvironment.with(UNLIMITED, async (environment) => {
    const worker = await environment.startWorker();
    const died = worker.exited.then((exit) => {
      throw new Error(`the worker ended with ${JSON.stringify(exit)}:\n${worker.stderr}`);
    });
    const polling = { ...WORKER_LOSS_OPTIONS.polling, timerPolls: 2 };
    const asked = {
      ...WORKER_LOSS_OPTIONS,
      polling,
      reconcileTimeout: '5m',
      prLinkTimeout: '100ms',
    } as const;
    const cases = [...IN_JOBS, ...IN_ERRORS];
    const ends = cases.map(async ([fault, end]) => {
      // Many reads, as only an answer that counts proves a delivery.
      const job = { turn: { reads: end === BY_READ ? 12 : 8 } };
      const ending = await (await environment.follow(job, asked, fault)).outcomeSummary();
      const by = String(ending.delivery.confirmedBy);
      return [fault, 'type' in ending ? ending.type : `${ending.status} by ${by}`];
    });
    const told = await Promise.race([Promise.all(ends), died]);
    died.catch(() => undefined);
    expect(told).toEqual(cases);
  }));
