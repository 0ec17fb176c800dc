import { expect, it } from '@jest/globals';
import type { JobFault } from '../../harness/follow-up-under-test';
import { WORKER_LOSS_OPTIONS, ProcessEnvironment } from '../../harness/process-environment';

const FIELDS = ['id', 'status', 'prLink', 'model', 'createdAt', 'archivedAt', 'source', 'repository', 'ref'];

/** The sandbox adds a lone surrogate to a text. sdk-core 1.24 exits the worker process if it decodes a completion with one. */
const text = 'surrogate';

const BY_RESPONSE = 'completed by response';
const BY_READ = 'completed by read';

/** A fault of the sandbox, and the expected outcome of the follow-up. */
type Case = readonly [fault: JobFault, outcome: string];

/** The field has the text in some responses. */
const inField = (field: string) => ({ name: 'strange-job', parameters: { field, text } }) as const;

const IN_RESPONSES_TO_POSTS = FIELDS.map((field): Case => [
  // If the response to the POST does not have the ID of the job, the delivery is unknown until a read shows it.
  { ...inField(field), operation: 'message', times: 1 },
  field === 'id' ? BY_READ : BY_RESPONSE,
]);
const IN_FIRST_READS = FIELDS.map((field): Case => [
  { ...inField(field), operation: 'get', times: 3 },
  BY_RESPONSE,
]);
const IN_READS_OF_POLL_JOB = FIELDS.map((field): Case => [
  { ...inField(field), operation: 'get', skip: 4, times: 3 },
  BY_RESPONSE,
]);

/** The error text and the headers of an error response have the text. The request is a read, or a POST that was processed or not. */
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
).map(([operation, code, processed, outcome]): Case => {
  const when = operation === 'get' ? { skip: 1, times: 2 } : { times: 1 };
  return [{ name: 'strange-error', operation, ...when, parameters: { text, code, processed } }, outcome];
});

const UNLIMITED = { sandbox: { messagesPerHour: null }, env: { AGENT_API_TIMEOUT: '60s' } };

// Proves A11.
it.each([
  ['a field of the response to the POST', IN_RESPONSES_TO_POSTS],
  ['a field of the baseline read or of a read with a timer', IN_FIRST_READS],
  ['a field of a read of pollJob', IN_READS_OF_POLL_JOB],
  ['the text or a header of an error response', IN_ERRORS],
])(
  'a worker keeps running, and every follow-up has the expected outcome, if %s has a lone surrogate',
  (_, cases) =>
    // On a busy machine, no response may exceed the timeout, because a POST that timed out is confirmed by a read.
    ProcessEnvironment.with(UNLIMITED, async (environment) => {
      const worker = await environment.startWorker();
      const died = worker.exited.then((exit) => {
        throw new Error(`the worker ended with ${JSON.stringify(exit)}:\n${worker.stderr}`);
      });
      const polling = { ...WORKER_LOSS_OPTIONS.polling, timerPolls: 2 };
      const options = {
        ...WORKER_LOSS_OPTIONS,
        polling,
        reconcileTimeout: '5m',
        prLinkTimeout: '100ms',
      } as const;
      const outcomes = cases.map(async ([fault, outcome]) => {
        // The turn has many reads, because only a fresh read can show the delivery.
        const job = { turn: { reads: outcome === BY_READ ? 12 : 8 } };
        const summary = await (await environment.follow(job, options, fault)).outcomeSummary();
        const confirmedBy = String(summary.delivery.confirmedBy);
        return [fault, 'type' in summary ? summary.type : `${summary.status} by ${confirmedBy}`];
      });
      const results = await Promise.race([Promise.all(outcomes), died]);
      died.catch(() => undefined);
      expect(results).toEqual(cases);
    }),
);
