/** The client for the tests of callers, without a Temporal server. src/entries/testing.ts exports it. */
import type { Client } from '@temporalio/client';
import { FollowUpError } from '../contract/follow-up-error';
import { DEFAULT_TASK_QUEUES } from '../contract/names';
import type { FollowUpResult } from '../contract/result';
import { type CallOptions, CallRunner } from './call-runner';
import type { FollowUpDescription } from './description';
import { type CallState, invalidFieldError } from './errors';
import { checkFilter, type FollowUpFilter, matchesFilter } from './filter';
import { awaitInMemoryResult, InMemoryFollowUpHandle } from './in-memory-handle';
import { AVAILABILITIES, type Availability, IN_MEMORY_NAMESPACE, InMemoryServer } from './in-memory-server';
import type { BatchClientLike, FollowUpClientLike, ScheduleClientLike } from './interfaces';
import { checkName, checkObject, checkRun } from './options';
import { checkRetryAll, retryAll, type RetryAllOptions, type RetryResult } from './retry-all';
import type { SimulatedOutcome } from './simulated-outcome';
import {
  type NamedRequest,
  parseStartDelay,
  planFromRequest,
  START_CHECKS,
  type FollowUpStartResult,
  type StartOptions,
} from './start';
import { startOptions } from '../temporal/start-options';

/** A client whose follow-ups have the outcomes that the test sets. Batches and schedules are not simulated. */
export class InMemoryFollowUpClient implements FollowUpClientLike {
  readonly taskQueue = DEFAULT_TASK_QUEUES.followUp;
  readonly namespace = IN_MEMORY_NAMESPACE;
  readonly batches: BatchClientLike = {
    start: () => Promise.reject(notSimulatedError('batches')),
    getHandle: () => {
      throw notSimulatedError('batches');
    },
  };
  readonly schedules: ScheduleClientLike = {
    create: () => Promise.reject(notSimulatedError('schedules')),
    getHandle: () => {
      throw notSimulatedError('schedules');
    },
  };
  readonly #server: InMemoryServer;
  readonly #calls = new CallRunner(OFFLINE_CLIENT, this.taskQueue);

  /**
   * @param outcomeOf returns the outcome for each start of a new follow-up and for each retry. By default, each follow-up is completed
   *   and has a link
   */
  constructor(outcomeOf: (request: NamedRequest) => SimulatedOutcome = () => ({})) {
    this.#server = new InMemoryServer(this.taskQueue, outcomeOf);
  }

  /** The requests of all messages that were sent or may have been sent, with one entry for each POST. */
  get sent(): readonly NamedRequest[] {
    return this.#server.followUps.flatMap(({ request, sendCount }) =>
      Array.from({ length: sendCount }, () => request),
    );
  }

  /** Sets the outcome of a running follow-up. @throws Error if the follow-up does not exist or can't get this outcome */
  setOutcome(workflowId: string, outcome: SimulatedOutcome): void {
    checkName('workflowId', workflowId);
    checkObject('outcome', outcome);
    this.#server.find({ workflowId }).simulate(outcome);
  }

  /** Sets whether the Temporal server and the workers respond to later calls. By default, both respond (`all`). */
  setAvailability(availability: Availability): void {
    if (!AVAILABILITIES.includes(availability))
      throw invalidFieldError('availability', `must be one of ${AVAILABILITIES.join(', ')}`);
    this.#server.setAvailability(availability);
  }

  async start(
    request: NamedRequest,
    options: StartOptions = {},
  ): Promise<InMemoryFollowUpHandle & FollowUpStartResult> {
    const start = await this.#start(request, options, (started) => started);
    return Object.assign(this.getHandle(start.workflowId, start.runId), start);
  }

  execute(request: NamedRequest, options: StartOptions = {}): Promise<FollowUpResult> {
    return this.#start(request, options, (started) => awaitInMemoryResult(this.#server, started));
  }

  getHandle(workflowId: string, runId?: string): InMemoryFollowUpHandle {
    checkRun(workflowId, runId);
    return new InMemoryFollowUpHandle(this.#calls, this.#server, workflowId, runId);
  }

  list(filter: FollowUpFilter = {}, options: CallOptions = {}): AsyncIterable<FollowUpDescription> {
    checkFilter(filter);
    return this.#calls.iterate(options, () => this.#list(filter));
  }

  retryAll(filter: FollowUpFilter, options: RetryAllOptions = {}): AsyncIterable<RetryResult> {
    checkRetryAll(filter, options);
    return retryAll(this, filter, options);
  }

  close(): Promise<void> {
    this.#calls.close();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #start<T>(
    request: NamedRequest,
    options: StartOptions,
    then: (started: FollowUpStartResult) => T | Promise<T>,
  ): Promise<T> {
    const callState: CallState = { unconfirmedStart: 'follow-up' };
    const work = async () => {
      const plan = planFromRequest(request);
      const delayMs = parseStartDelay(options.startDelay);
      const { workflowId } = startOptions(plan);
      callState.workflowId = workflowId;
      this.#server.checkReachable(callState);
      const attached = this.#server.attach(workflowId, request);
      const { requestId } = plan;
      const { runId } = attached ?? this.#server.start(request, delayMs);
      callState.unconfirmedStart = undefined;
      return then(attached ?? { workflowId, requestId, runId, attached: false, promptCompared: true });
    };
    return this.#calls.run(options, work, { callState, optionChecks: START_CHECKS });
  }

  async *#list(filter: FollowUpFilter): AsyncGenerator<FollowUpDescription, void> {
    this.#server.checkReachable({});
    const runs = this.#server.followUps;
    const latestRuns = new Map(runs.map((run) => [run.workflowId, run]));
    const found = runs.filter((run) => latestRuns.get(run.workflowId) === run).map((run) => run.describe());
    const running = found.filter(({ state }) => state === 'running');
    const ended = found.filter(({ state }) => state !== 'running').reverse();
    for (const each of [...running.reverse(), ...ended]) {
      const values = { ...each, batchId: null };
      const fields = ['phase', 'projectId', 'jobId', 'batchId'] as const;
      const isListed = fields.every(
        (field) => filter[field] === undefined || values[field] === filter[field],
      );
      if (isListed && matchesFilter(each, filter))
        yield await Promise.resolve({ ...each, startsAt: null, receipt: null });
    }
  }
}

/** The parts of the SDK's client that a call uses. */
const OFFLINE_CLIENT = {
  options: { namespace: IN_MEMORY_NAMESPACE, loadedDataConverter: { payloadCodecs: [] } },
  withAbortSignal: <T>(_: AbortSignal, work: () => Promise<T>) => work(),
} as unknown as Client;

function notSimulatedError(part: string): FollowUpError {
  return new FollowUpError('SERVER_ERROR', `InMemoryFollowUpClient does not simulate ${part}.`);
}
