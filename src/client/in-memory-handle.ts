import { DELIVERY_DECISIONS, type DeliveryDecision, type FollowUpProgress } from '../contract/result';
import { type DurationText, parseDuration } from '../contract/duration';
import type { CallOptions, CallRunner } from './call-runner';
import type { FollowUpDescription } from './description';
import {
  waitTimeoutError,
  type CallState,
  explainMissingResponse,
  updateRejectedError,
  wrongStateError,
} from './errors';
import type { InMemoryFollowUp } from './in-memory-follow-up';
import type { InMemoryServer } from './in-memory-server';
import type { FollowUpHandleLike } from './interfaces';
import type { ProgressReport } from './progress';
import { resultError } from './await-result';
import { checkRetry } from './start';

/** The timeout in milliseconds that an update's error reports if no worker runs, as with a Temporal server. */
const NO_WORKER_TIMEOUT_MS = 2_000;

/** The handle of a simulated follow-up. */
export class InMemoryFollowUpHandle implements FollowUpHandleLike {
  readonly #calls: CallRunner;
  readonly #server: InMemoryServer;

  constructor(
    calls: CallRunner,
    server: InMemoryServer,
    readonly workflowId: string,
  ) {
    this.#calls = calls;
    this.#server = server;
  }

  result(options: CallOptions = {}) {
    return this.#run(options, async () => {
      await this.#server.whenReachable();
      return awaitInMemoryResult(this.#server, this.workflowId);
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

  extendDeadline(duration: DurationText, options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.#update(options, (followUp) => {
      const parsed = parseDuration(duration);
      if ('problem' in parsed) throw updateRejectedError(this.workflowId, `duration: ${parsed.problem}`);
      followUp.extendDeadline(parsed.ms);
    });
  }

  resolveDelivery(decision: DeliveryDecision, options: CallOptions = {}): Promise<FollowUpProgress> {
    return this.#update(options, (followUp) => {
      const { phase } = followUp.progress;
      if (phase !== 'needs-decision') {
        const problem = `the follow-up is in the phase ${phase}, and a decision is accepted only in needs-decision`;
        throw updateRejectedError(this.workflowId, problem);
      }
      if (!DELIVERY_DECISIONS.some((each) => each === decision))
        throw updateRejectedError(
          this.workflowId,
          `decision: must be one of ${DELIVERY_DECISIONS.join(', ')}`,
        );
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

  retry(options: CallOptions = {}): Promise<{ readonly runId: string }> {
    const start = (callState: CallState) => {
      const { end, receipt, request } = this.#find(callState);
      if (end === null) throw wrongStateError(this.workflowId, 'running');
      const hasReceipt = end.state !== 'terminated' && end.state !== 'timed-out';
      checkRetry(this.workflowId, hasReceipt ? receipt : null);
      const { runId } = this.#server.start(request);
      return { runId };
    };
    return this.#run(options, start, 'follow-up');
  }

  #run<T>(
    options: CallOptions,
    work: (callState: CallState) => T | Promise<T>,
    unconfirmedStart?: CallState['unconfirmedStart'],
  ): Promise<T> {
    const callState: CallState = { workflowId: this.workflowId, unconfirmedStart };
    return this.#calls.run({ ...options, callState }, async () => work(callState));
  }

  #find(callState: CallState): InMemoryFollowUp {
    this.#server.checkReachable(callState);
    return this.#server.find(this.workflowId);
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

/** Waits for the result of the latest run. @throws the same error as the real client if the run has no result */
export async function awaitInMemoryResult(server: InMemoryServer, workflowId: string) {
  const followUp = server.find(workflowId);
  await followUp.endPromise;
  const { end, receipt } = followUp;
  if (end?.result) return end.result;
  throw resultError(workflowId, end?.cause, receipt);
}
