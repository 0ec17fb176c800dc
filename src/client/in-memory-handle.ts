import type { DeliveryDecision, FollowUpProgress } from '../contract/result';
import type { DurationText } from '../contract/duration';
import { decisionPhaseProblem } from '../follow-up/state';
import type { CallOptions, CallRunner } from './call-runner';
import type { FollowUpDescription } from './description';
import {
  waitTimeoutError,
  type CallState,
  explainMissingResponse,
  retriedAlreadyError,
  updateRejectedError,
  wrongStateError,
} from './errors';
import type { InMemoryFollowUp } from './in-memory-follow-up';
import type { InMemoryServer } from './in-memory-server';
import type { FollowUpHandleLike } from './interfaces';
import type { NamedRun } from './named-run';
import { checkDecision, checkDuration } from './options';
import type { ProgressReport } from './progress';
import { resultError } from './await-result';
import { checkRetry } from './start';
import { NO_WORKER_TIMEOUT_MS } from './update-running';

/** The handle of a simulated follow-up. */
export class InMemoryFollowUpHandle implements FollowUpHandleLike {
  readonly #calls: CallRunner;
  readonly #server: InMemoryServer;

  constructor(
    calls: CallRunner,
    server: InMemoryServer,
    readonly workflowId: string,
    readonly runId?: string,
  ) {
    this.#calls = calls;
    this.#server = server;
  }

  result(options: CallOptions = {}) {
    return this.#run(options, async () => {
      await this.#server.whenReachable();
      return awaitInMemoryResult(this.#server, this);
    });
  }

  progress(options: CallOptions = {}): Promise<ProgressReport> {
    return this.#run(options, (callState) => {
      const followUp = this.#find(callState);
      const workers = this.#server.hasWorkers ? 1 : 0;
      if (workers > 0 && followUp.startsAt === null) return { from: 'worker', progress: followUp.progress };
      return { from: 'server', description: followUp.describe(), workers };
    });
  }

  describe(options: CallOptions = {}): Promise<FollowUpDescription> {
    return this.#run(options, (callState) => this.#find(callState).describe());
  }

  pollNow(options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.#update(options, (followUp) => {
      followUp.pollNow();
    });
  }

  async extendDeadline(duration: DurationText, options: CallOptions = {}): Promise<FollowUpProgress> {
    const ms = checkDuration('duration', duration);
    return this.#update(options, (followUp) => {
      followUp.extendDeadline(ms);
    });
  }

  async resolveDelivery(decision: DeliveryDecision, options: CallOptions = {}): Promise<FollowUpProgress> {
    checkDecision(decision);
    return this.#update(options, (followUp) => {
      const { phase } = followUp.progress;
      if (phase !== 'needs-decision') throw updateRejectedError(this.workflowId, decisionPhaseProblem(phase));
      followUp.resolveDelivery(decision);
    });
  }

  cancel(options: CallOptions = {}): Promise<void> {
    return this.#run(options, (callState) => {
      const followUp = this.#running(callState);
      this.#server.whenWorkersRun(() => {
        if (followUp.end === null) followUp.cancel();
      });
    });
  }

  async retry(options: CallOptions = {}): Promise<InMemoryFollowUpHandle & { readonly runId: string }> {
    const { workflowId } = this;
    const start = (callState: CallState) => {
      this.#server.checkReachable(callState);
      const latest = this.#server.find({ workflowId });
      const { end, receipt, request } = latest;
      if (end === null) throw wrongStateError(workflowId, 'running');
      if (this.runId !== undefined && latest.runId !== this.runId)
        throw retriedAlreadyError(workflowId, latest.runId);
      const hasReceipt = end.state !== 'terminated' && end.state !== 'timed-out';
      checkRetry(workflowId, hasReceipt ? receipt : null);
      return this.#server.start(request);
    };
    const { runId } = await this.#run(options, start, 'follow-up');
    const handle = new InMemoryFollowUpHandle(this.#calls, this.#server, workflowId, runId);
    return handle as InMemoryFollowUpHandle & { readonly runId: string };
  }

  #run<T>(
    options: CallOptions,
    work: (callState: CallState) => T | Promise<T>,
    unconfirmedStart?: CallState['unconfirmedStart'],
  ): Promise<T> {
    const callState: CallState = { workflowId: this.workflowId, unconfirmedStart };
    return this.#calls.run(options, async () => work(callState), { callState });
  }

  #find(callState: CallState): InMemoryFollowUp {
    this.#server.checkReachable(callState);
    return this.#server.find(this);
  }

  #running(callState: CallState): InMemoryFollowUp {
    const followUp = this.#find(callState);
    if (followUp.end !== null) throw wrongStateError(this.workflowId, followUp.end.state);
    return followUp;
  }

  #update(options: CallOptions, update: (followUp: InMemoryFollowUp) => void): Promise<FollowUpProgress> {
    return this.#run(options, (callState) => {
      const followUp = this.#running(callState);
      const { startsAt, workflowId, taskQueue } = followUp;
      if (startsAt !== null)
        throw updateRejectedError(workflowId, `the follow-up has not started; it starts at ${startsAt}`);
      if (!this.#server.hasWorkers)
        throw waitTimeoutError({ workflowId }, NO_WORKER_TIMEOUT_MS, explainMissingResponse(taskQueue, 0));
      update(followUp);
      return followUp.progress;
    });
  }
}

/** Waits for the result of a run. @throws the same error as the real client if the run has no result */
export async function awaitInMemoryResult(server: InMemoryServer, run: NamedRun) {
  const followUp = server.find(run);
  await followUp.endPromise;
  const { end, receipt, workflowId } = followUp;
  if (end?.result) return end.result;
  throw resultError(workflowId, end?.cause, receipt);
}
