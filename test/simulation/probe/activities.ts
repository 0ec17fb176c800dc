import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';

/** What an attempt does, one after the other. It completes at the end. */
export type Act =
  | { readonly beat: unknown }
  /** Waits until the test lets it go on. */
  | { readonly gate: string }
  /** A gate for each time that it is begun: `a, begun 1`. */
  | 'own gate'
  /** Reports no more: as if its worker had died. */
  | 'hang'
  /** Beats until it is cancelled; then it goes on, or ends as cancelled. */
  | { readonly cancelled: 'goes on' | 'ends' }
  | { readonly fail: string; readonly againMs?: number; readonly details?: unknown };

/** For each attempt; the last ones do as the last that is given. */
export type Attempts = readonly (readonly Act[])[];

export type ProbeActivities = ReturnType<typeof createProbeActivities>;

/** Where a test can hold an activity, and see that it was reached. */
export class Gates {
  private readonly opened = new Map<string, { readonly open: Promise<void>; readonly now: () => void }>();
  readonly reached = new Set<string>();
  /** The number of each attempt that was begun. */
  readonly attempts: number[] = [];
  private readonly over = this.of('over');

  open(name: string): void {
    this.of(name).now();
  }

  /** Whoever comes from now on is held again. */
  shut(name: string): void {
    this.opened.delete(name);
    this.reached.delete(name);
  }

  /** Whatever hangs ends. */
  close(): void {
    this.over.now();
  }

  async pass(name: string): Promise<void> {
    this.reached.add(name);
    await Promise.race([this.of(name).open, this.over.open]);
  }

  async end(): Promise<void> {
    await this.over.open;
  }

  private of(name: string) {
    let gate = this.opened.get(name);
    if (gate === undefined) {
      let now: () => void = () => undefined;
      const open = new Promise<void>((resolve) => (now = resolve));
      this.opened.set(name, (gate = { open, now }));
    }
    return gate;
  }
}

/** The activity of the probe: it does as it is told. */
export function createProbeActivities(gatesOf: (workflowId: string) => Gates) {
  return {
    async perform(label: string, attempts: Attempts): Promise<string> {
      const { info } = Context.current();
      const gates = gatesOf(info.workflowExecution?.workflowId ?? '');
      const { attempt } = info;
      const nth = gates.attempts.push(attempt);
      for (const act of attempts[attempt - 1] ?? attempts.at(-1) ?? [])
        await perform(act === 'own gate' ? { gate: `${label}, begun ${nth}` } : act, gates);
      const kept: unknown = info.heartbeatDetails;
      return `${label} ${attempt}${kept === undefined ? '' : ` had ${JSON.stringify(kept)}`}`;
    },
  };
}

async function perform(act: Exclude<Act, 'own gate'>, gates: Gates): Promise<void> {
  const context = Context.current();
  if (act === 'hang') await gates.end();
  else if ('beat' in act) context.heartbeat(act.beat);
  else if ('gate' in act) await gates.pass(act.gate);
  else if ('cancelled' in act) {
    gates.reached.add('beats');
    const beat = setInterval(() => {
      context.heartbeat('alive');
    }, 50);
    const why = context.cancelled.catch((error: unknown) => error);
    const reason = await Promise.race([why, gates.end()]);
    clearInterval(beat);
    if (act.cancelled === 'ends') throw reason as Error;
  } else
    throw ApplicationFailure.create({
      message: act.fail,
      ...(act.againMs === undefined ? {} : { nextRetryDelay: act.againMs }),
      ...(act.details === undefined ? {} : { details: [act.details] }),
    });
}
