import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW, UPDATE_RESOLVE_DELIVERY } from '../../../src/core/names';
import type { FollowUpRequest } from '../../../src/core/request';
import { seededRandom } from '../../../sandbox/random';
import { listed } from '../listed';
import type { ProcessEnvironment } from '../process-environment';
import { resetToTask, workflowTasks } from '../reset';
import { throughRestarts } from '../restartable-server';
import { type End, endOf } from './oracle';
import { CONFIRM_MS } from './service';

/**
 * Turns of up to 6 s are seen several times; `reconcile` outlasts one; `confirm` is as long as the service's replicas lag
 * and a message waits for its take-up. A send that nobody reports is given up after 22 to 29 s.
 */
export const TIMES = {
  deadline: '70s',
  polling: { initial: '2s', growth: 0.2, maximum: '5s', jitter: 0.2 },
  reconcile: '6s',
  settle: '3s',
  confirm: `${CONFIRM_MS}ms`,
} as const;

/** Starts are spread, so that what happens to machines meets follow-ups at every point. */
const STARTS_MS = 15_000;
const LONGEST_PAUSE_MS = 15_000;

/** Longer than a follow-up takes: a worker that dies delays an answer, and the end of the follow-up brings one. */
const UPDATE_TIMEOUT_MS = 160_000;

/** An update that is answered by nobody for so long hangs. The server may refuse one at once while it resets the run. */
const HANGS_MS = 10_000;

/** How many follow-ups of a hundred meet each deed. */
const DEEDS = { pollNow: 20, extend: 8, reset: 14, cancel: 5 } as const;

/** One follow-up of the soak to a job of its own, and the people around it. What it draws depends on `random` alone. */
export class Part {
  readonly key: { readonly projectId: string; readonly jobId: string };
  readonly asked: Pick<FollowUpRequest, 'onUnknownDelivery' | 'whenActive'>;
  readonly status: 'completed' | 'failed' | 'active' | 'archived';
  /** By people, that the message has not arrived. */
  notDelivered = 0;
  resets = 0;
  workflowId = '';
  /** What was done to it, and was not answered. */
  readonly unanswered: string[] = [];
  end: End = { kind: 'other', problem: 'nothing' };
  private readonly random: () => number;

  constructor(
    private readonly environment: ProcessEnvironment,
    index: number,
    random: () => number,
  ) {
    const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
    this.key = { projectId: `project-${index % 10}`, jobId: `job-${index}` };
    this.status = oneOf('completed', 'completed', 'completed', 'failed', 'active', 'archived');
    this.asked = {
      onUnknownDelivery: oneOf('fail', 'fail', 'assume-delivered', 'resend', 'ask', 'ask'),
      whenActive: oneOf('send', 'wait', 'wait', 'reject'),
    };
    const durationMs = Math.round(random() < 0.1 ? 50 : 500 + 5_500 * random());
    const outcome = oneOf('pull-request', 'pull-request', 'new-pull-request', 'no-change', 'failed');
    const { projectId, jobId: id } = this.key;
    environment.sandbox.addJob({ projectId, id, status: this.status, turn: { durationMs, outcome } });
    this.random = seededRandom(Math.floor(random() * 2 ** 31));
  }

  /** From its start to the end of its last run. */
  async play(stop: AbortSignal): Promise<void> {
    await sleep(this.random() * STARTS_MS);
    const request = { ...this.key, requestId: 'soak', ...TIMES, ...this.asked };
    const { handle } = await throughRestarts(() => this.environment.send(request));
    this.workflowId = handle.workflowId;
    for (const [deed, share] of Object.entries(DEEDS) as [keyof typeof DEEDS, number][]) {
      if (this.random() * 100 >= share) continue;
      await sleep(this.random() ** 2 * LONGEST_PAUSE_MS, undefined, { signal: stop }).catch(() => undefined);
      if (!stop.aborted) await this[deed]();
    }
    this.end = await endOf(this.environment.client, this.workflowId);
  }

  /** Decides whether the message was delivered, right or wrong, now and then for the first run. */
  async decide(): Promise<void> {
    const { runId } = await throughRestarts(() => this.handle.describe());
    const decision = this.random() < 0.5 ? 'delivered' : 'not-delivered';
    const named = this.random() < 0.8 ? [runId] : [];
    const isRefused = await this.update(UPDATE_RESOLVE_DELIVERY, decision, ...named);
    if (decision === 'not-delivered' && !isRefused) this.notDelivered += 1;
  }

  private get handle() {
    return this.environment.client.workflow.getHandle(this.workflowId);
  }

  private pollNow() {
    return this.update(UPDATE_POLL_NOW);
  }

  private extend() {
    return this.update(UPDATE_EXTEND_DEADLINE, this.random() < 0.8 ? '20s' : '\ud800');
  }

  private cancel() {
    return throughRestarts(() => this.handle.cancel());
  }

  /** To before a workflow task by chance, early ones above all: there the message is sent. */
  private async reset(): Promise<void> {
    const share = this.random() ** 2;
    try {
      await throughRestarts(async () => {
        const tasks = await workflowTasks(this.handle);
        await resetToTask(this.handle, tasks[Math.floor(share * tasks.length)]);
      });
      this.resets += 1;
    } catch (error) {
      // It has moved on since its history was read.
      if (!/already|not found|invalid|reset/i.test(String(error))) throw error;
    }
  }

  /** The id makes an update that is repeated the same one, so that the server may die while it is answered. @returns whether it was refused */
  private async update(name: string, ...args: unknown[]): Promise<boolean> {
    const { client } = this.environment;
    const askedAt = Date.now();
    const until = askedAt + UPDATE_TIMEOUT_MS;
    const options = { args: args as [unknown], updateId: randomUUID() };
    const ask = () => {
      if (Date.now() >= until) throw new Error('nobody has answered');
      return client.withDeadline(until, () => this.handle.executeUpdate<unknown, [unknown]>(name, options));
    };
    try {
      await throughRestarts(ask);
      return false;
    } catch (error) {
      if (error instanceof WorkflowUpdateFailedError) return true;
      const tookMs = Date.now() - askedAt;
      const isOver = error instanceof WorkflowNotFoundError;
      if (!isOver && tookMs > HANGS_MS) this.unanswered.push(`${name} after ${tookMs} ms: ${String(error)}`);
      return false;
    }
  }
}

/** Somebody who looks for follow-ups that wait for a decision, and decides. */
export async function decideAll(parts: readonly Part[], environment: ProcessEnvironment, over: AbortSignal) {
  const { client, taskQueue } = environment;
  const query = `TaskQueue = '${taskQueue}' AND FollowUpPhase = 'needs-decision' AND ExecutionStatus = 'Running'`;
  while (!over.aborted) {
    const asking = await throughRestarts(() => listed(client.workflow.list({ query })));
    await Promise.all(parts.filter((part) => asking.includes(part.workflowId)).map((part) => part.decide()));
    await sleep(1_000, undefined, { signal: over }).catch(() => undefined);
  }
}
