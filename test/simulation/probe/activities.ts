import { EventEmitter, once } from 'node:events';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';

export type ProbeActivities = ReturnType<typeof createProbeActivities>;

const ALL_GATES = 'over';

/** Where a test can hold an activity, and see that it was reached. */
export class Gates {
  readonly reached = new Set<string>();
  /** The number of each attempt that was begun. */
  readonly attempts: number[] = [];
  private readonly opened = new Set<string>();
  private readonly events = new EventEmitter();

  open(name: string): void {
    this.opened.add(name);
    this.events.emit(name);
  }

  /** Whoever comes from now on is held again. */
  shut(name: string): void {
    this.opened.delete(name);
    this.reached.delete(name);
  }

  /** Whatever hangs ends. */
  openAll(): void {
    this.open(ALL_GATES);
  }

  async waitForOpen(name = ALL_GATES): Promise<void> {
    this.reached.add(name);
    if (this.opened.has(name) || this.opened.has(ALL_GATES)) return;
    await Promise.race([once(this.events, name), once(this.events, ALL_GATES)]);
  }
}

/** The activity of the probe: it does as it is told. */
export function createProbeActivities(gatesOf: (workflowId: string) => Gates) {
  return {
    /**
     * @param attempts what each of them does before it completes, as `beat kept, hang | gate g`; further ones do as the last
     */
    async perform(label: string, attempts: string): Promise<string> {
      const { info } = Context.current();
      const gates = gatesOf(info.workflowExecution?.workflowId ?? '');
      gates.attempts.push(info.attempt);
      const scripts = attempts.split('|');
      for (const step of (scripts[info.attempt - 1] ?? scripts.at(-1) ?? '').split(','))
        await perform(step.trim().split(' '), gates);
      const kept: unknown = info.heartbeatDetails;
      return `${label} ${info.attempt}${kept === undefined ? '' : ` had ${JSON.stringify(kept)}`}`;
    },
  };
}

async function perform([step, word = '', againMs, details]: string[], gates: Gates): Promise<void> {
  const context = Context.current();
  switch (step) {
    case 'beat':
      context.heartbeat(word);
      return;
    // A heartbeat by a call of its own, also one that is refused.
    case 'ask': {
      const { info, client } = context;
      return client.activity.heartbeat(info.taskToken, word === '' ? null : word).catch((error: unknown) => {
        gates.reached.add(error instanceof Error ? error.message : 'refused');
      });
    }
    case 'gate':
      // `own`: one for each time that it is begun.
      return gates.waitForOpen(word === 'own' ? `begun ${gates.attempts.length}` : word);
    // Reports no more: as if its worker had died.
    case 'hang':
      return gates.waitForOpen();
    // Beats until it is cancelled; then it goes on, or ends as cancelled.
    case 'alive': {
      gates.reached.add('beats');
      const beat = setInterval(() => context.heartbeat('alive'), 50);
      const why = context.cancelled.catch((error: unknown) => error);
      const reason = await Promise.race([why, gates.waitForOpen()]);
      clearInterval(beat);
      if (word === 'ends') throw reason as Error;
      return;
    }
    case 'fail':
      throw ApplicationFailure.create({
        message: word,
        ...(againMs && { nextRetryDelay: Number(againMs) }),
        ...(details && { details: [details] }),
      });
    default:
  }
}
