import type { BatchReport } from '../../../src/client/batch/describe';
import { BatchEnds, findBatch } from '../../../src/client/batch/describe';
import { Calls } from '../../../src/client/call';
import type { ItemEnd } from '../../../src/core/batch/progress';
import { type BatchMemo, CHUNK_WORKFLOW, MEMO_BATCH, type Position } from '../../../src/core/batch/state';
import { FollowUpError } from '../../../src/core/errors';
import { batchWorkflowId } from '../../../src/core/ids';
import type { MachineAct } from '../acts';
import type { Request } from '../agent-service';
import { BEGIN } from '../clock';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import { clientOf } from '../temporal/service';
import { TASK_QUEUES, World } from '../world';
import { BATCH_ID, BatchPeople } from './people';
import type { BatchAct, BatchPlan } from './plan';

/** Nothing lasts longer: what still runs then waits for ever. */
const HORIZON_MS = 3 * 86_400_000;

/** Far more than a world takes: more steps mean an endless loop. */
const MOST_STEPS = 1_000_000;

/** A workflow task that fails is tried again for ever. */
const MOST_BROKEN = 20;

const LONGEST_PAUSE_S = 120;

/** Longer than lists lag, and than a live reader looks back. */
const UNTIL_LISTED_MS = 90_000;

/** Points that a story tells. */
const TOLD =
  /^(runItems (started|reported)|keep recorded|post (begun|processed)|closeChunks started|phase .*)$/;

/** A start of a follow-up by a run of the batch, with what the server had of that run at this moment. */
export interface StartOfItem {
  readonly run: Run;
  readonly batch: Run;
  readonly memo: BatchMemo;
  /** By the latest heartbeat of the activity. */
  readonly kept: Position | null;
}

/** Something that people have done to the batch or its items. */
export interface Done {
  readonly act: BatchAct;
  readonly at: number;
  endedAt: number;
  failed: string | null;
  answer?: unknown;
  /** The run of the batch at that time. */
  readonly run: Run | undefined;
}

/** What is known of a world once all in it has ended. */
export type BatchFacts = Pick<
  BatchWorld,
  'plan' | 'names' | 'runs' | 'requests' | 'starts' | 'done' | 'log' | 'broken' | 'deleted' | 'told'
>;

/** One batch and its jobs. */
export class BatchWorld extends World<BatchPlan, BatchAct> {
  readonly starts: StartOfItem[] = [];
  readonly done: Done[] = [];
  /** What is told of it at the end; null where the server has forgotten it. */
  told: { readonly batch: BatchReport; readonly ends: readonly ItemEnd[] } | null = null;
  private readonly noted = new Set<Run>();
  private readonly people = new BatchPeople(this.plan, this.calls(), this.server, this.clock);
  /** In seconds, while nobody does anything. */
  private pausedFor = 0;

  /** The workflow ids of the items, in the order of the file. */
  get names(): readonly string[] {
    return this.people.names;
  }

  get runs(): readonly Run[] {
    return this.server.runs;
  }

  get requests(): readonly Request[] {
    return [...this.services.values()].flatMap((service) => service.requests);
  }

  /** With the time. */
  get deleted(): ReadonlyMap<Run, number> {
    return this.people.deleted;
  }

  play(): Promise<BatchFacts> {
    const { concurrency, tolerate, finishes } = this.plan;
    const start = (options: Pick<Partial<BatchPlan>, 'concurrency' | 'tolerate'>) =>
      this.letPeople({ kind: 'start', times: 1 }, async () =>
        this.people.start(await this.people.checked(), options),
      );
    const over = { is: false };
    const script = async () => {
      await this.quiet();
      for (let again = 0; finishes && again < 2; again += 1) {
        if (this.people.batchRun?.status === 'WorkflowExecutionCompleted') break;
        start({ tolerate: null });
        await this.quiet();
      }
      await this.clock.sleep(UNTIL_LISTED_MS);
      await this.lookAtLast();
    };
    let end: Promise<void> | undefined;
    return this.run(
      () => {
        start({ concurrency, tolerate });
        end = script().finally(() => (over.is = true));
        end.catch(() => undefined);
      },
      () => over.is,
      MOST_STEPS,
      async () => {
        if (over.is) await end;
        else this.broken.push('it loops without an end');
      },
    );
  }

  protected override carryOut(act: Exclude<BatchAct, MachineAct>): true {
    return this.letPeople(act, () => this.people.carryOut(act));
  }

  protected override where(): string {
    return '';
  }

  protected override passes(point: string): boolean {
    if (point === 'start recorded') this.noteStart();
    return TOLD.test(point);
  }

  /** By a connection that is slow now and then. */
  private calls(): Calls {
    const { server, luck, clock, plan } = this;
    const pause = (method: string) =>
      clock.sleep(luck.between(`their ${method}`, 1, luck.chance('is slow', 0.15) ? plan.paceMs : 60));
    const reach = async <T>(method: string, answer: () => T): Promise<T> => {
      await pause(method);
      await new Promise<void>((resolve) => server.whenThere(resolve));
      const value = answer();
      await pause(method);
      return value;
    };
    const named = { namespace: `${server.namespace} of people`, identity: 'people' };
    return new Calls(clientOf(server, reach, named), TASK_QUEUES.followUp);
  }

  private async lookAtLast(): Promise<void> {
    if (this.server.find(batchWorkflowId(BATCH_ID)) === undefined) return;
    const { client } = this.people.calls;
    const batch = await findBatch(client, BATCH_ID);
    try {
      this.told = { batch, ends: await new BatchEnds(client).news(batch) };
    } catch (error) {
      // Its items may be older than the retention.
      if (!(error instanceof FollowUpError)) throw error;
      this.say('people', `the results: ${error.message}`);
    }
  }

  /** Until all has ended, and nobody does anything more. */
  private async quiet(): Promise<void> {
    const runs = () => this.runs.filter(({ start }) => start.workflowType !== CHUNK_WORKFLOW);
    while (this.waitsFor > 0 || runs().some(({ isOpen }) => isOpen)) {
      await this.clock.sleep(1_000);
      this.noteEnds();
      this.resumeAtLast();
      if (this.clock.now - BEGIN > HORIZON_MS || this.broken.length > MOST_BROKEN) return;
    }
  }

  /** A pause may have come without an answer, or again by a reset: nothing must wait for ever. */
  private resumeAtLast(): void {
    const run = this.people.batchRun;
    const memo = fromPayload(run?.memo[MEMO_BATCH]) as BatchMemo | undefined;
    const isPaused = run?.isOpen === true && memo?.paused === true;
    this.pausedFor = isPaused && this.waitsFor === 0 ? this.pausedFor + 1 : 0;
    if (this.pausedFor < LONGEST_PAUSE_S) return;
    this.pausedFor = 0;
    this.carryOut({ kind: 'resume' });
  }

  private noteStart(): void {
    const run = this.runs.at(-1);
    const batch = this.runs.find(({ runId }) => runId === run?.start.asked?.by);
    if (run === undefined || batch === undefined || this.starts.at(-1)?.run === run) return;
    const memo = fromPayload(batch.memo[MEMO_BATCH]) as BatchMemo;
    const activity = [...batch.activities.values()].find(({ name }) => name === 'runItems');
    const kept = (fromPayload(activity?.details?.[0]) as Position | undefined) ?? null;
    this.starts.push({ run, batch, memo, kept });
    this.say(batch.runId, `starts ${this.itemOf(run)} as ${run.runId}`);
  }

  private noteEnds(): void {
    for (const run of this.runs) {
      if (run.isOpen || this.noted.has(run)) continue;
      this.noted.add(run);
      const isBatch = run.workflowId === batchWorkflowId(BATCH_ID);
      const why = run.end.failure?.applicationFailureInfo?.type ?? '';
      this.say(run.runId, `${isBatch ? 'the batch' : this.itemOf(run)}: ${run.status.slice(17)} ${why}`);
      if (run.status !== 'WorkflowExecutionContinuedAsNew')
        this.reached(isBatch ? 'batch ended' : 'item ended');
    }
  }

  private itemOf({ workflowId }: Run): string {
    const number = this.names.indexOf(workflowId);
    return number < 0 ? workflowId : `item ${number} (${workflowId.split(':')[2] ?? ''})`;
  }

  /** Somebody does something; an error of the client is an answer, any other one is a bug. */
  private letPeople(act: BatchAct, work: () => Promise<unknown>): true {
    const { now: at } = this.clock;
    const done: Done = { act, at, endedAt: Infinity, failed: null, run: this.people.batchRun };
    this.done.push(done);
    this.waitsFor += 1;
    const told = (answer: unknown) => {
      done.answer = answer;
      const words = answer === undefined ? 'done' : JSON.stringify(answer).slice(0, 200);
      this.say('people', `${act.kind}: ${words}`);
    };
    const failed = (error: unknown) => {
      const isAnswer = error instanceof FollowUpError;
      if (!isAnswer) this.broken.push(`${act.kind}: ${String((error as Error).stack)}`);
      done.failed = isAnswer ? error.code : String(error);
      this.say('people', `${act.kind}: ${String(error)}`);
    };
    // Not in the name of the process that has reached the point, nor within the deadline of its call.
    this.clock.after(0, () => {
      void work()
        .then(told, failed)
        .finally(() => {
          this.waitsFor -= 1;
          done.endedAt = this.clock.now;
        });
    });
    return true;
  }
}
