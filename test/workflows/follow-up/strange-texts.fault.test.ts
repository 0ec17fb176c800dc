import { expect, it } from '@jest/globals';
import type { Following, JobFault } from '../../harness/following';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';

const FIELDS = ['id', 'status', 'prLink', 'model', 'createdAt', 'archivedAt', 'source', 'repository', 'ref'];

/** A lone surrogate: the SDK's core ends the worker's process when it meets one in a completion (1.24, measured). */
const TEXT = 'surrogate';

interface Case {
  readonly name: string;
  readonly fault: JobFault;
  readonly end: string;
}

/** In each field of the answer to the message, of the reads by timers (the look included), and of those by one activity. */
const IN_JOBS: Case[] = FIELDS.flatMap((field) => {
  const strange = (name: string, where: Partial<JobFault>, end = 'completed by response') => {
    const fault = { name: 'strange-job', parameters: { field, text: TEXT }, ...where } as const;
    return { name: `${name}'s ${field}`, fault, end };
  };
  return [
    // An answer without the job's id is no answer of the service: reading proves the delivery.
    strange(
      'the message',
      { operation: 'message', times: 1 },
      field === 'id' ? 'completed by read' : undefined,
    ),
    strange('a read', { operation: 'get', times: 3 }),
    strange('a later read', { operation: 'get', skip: 4, times: 3 }),
  ];
});

/** In the words and headers of errors: of a read, or of the message, which was processed or not. */
const IN_ERRORS: Case[] = (
  [
    ['get', 403, 'no', 'completed by response'],
    ['get', 429, 'no', 'completed by response'],
    ['get', 503, 'no', 'completed by response'],
    ['message', 302, 'yes', 'completed by read'],
    ['message', 503, 'yes', 'completed by read'],
    ['message', 400, 'no', 'FollowUpRejected'],
    ['message', 429, 'no', 'completed by response'],
  ] as const
).map(([operation, code, processed, end]) => {
  const when = operation === 'get' ? { skip: 1, times: 2 } : { times: 1 };
  const parameters = { text: TEXT, code, processed };
  return {
    name: `${operation} with ${code}`,
    fault: { name: 'strange-error', operation, ...when, parameters },
    end,
  };
});

async function endOf(following: Following): Promise<string> {
  const ending = await following.ending();
  return 'type' in ending ? ending.type : `${ending.status} by ${String(ending.delivery.confirmedBy)}`;
}

// Proves A11.
it('a worker lives, and the job comes back whole, when a service puts strange texts into each field and error', () =>
  ProcessEnvironment.with({ sandbox: { messagesPerHour: null } }, async (environment) => {
    const worker = await environment.startWorker();
    const died = worker.exited.then(({ code, signal }) => {
      throw new Error(`the worker ended with ${signal ?? `exit code ${code}`}:\n${worker.stderr}`);
    });
    const cases = [...IN_JOBS, ...IN_ERRORS];
    const asked = {
      ...PATIENT,
      reconcile: '5m',
      settle: '100ms',
      polling: { ...PATIENT.polling, timerPolls: 2 },
    } as const;
    const stories = cases.map(async ({ name, fault, end }) => {
      // Many reads, as only an answer that counts proves a delivery.
      const job = { turn: { reads: end.endsWith('read') ? 12 : 8 } };
      const following = await environment.follow(job, asked, fault);
      return `${name}: ${await endOf(following)}`;
    });
    const told = await Promise.race([Promise.all(stories), died]);
    died.catch(() => undefined);
    expect(told).toEqual(cases.map(({ name, end }) => `${name}: ${end}`));
  }));
