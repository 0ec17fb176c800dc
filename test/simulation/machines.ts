import { type MachineAct, OF_MACHINES } from './acts';
import { SimulatedWorker, type WorkerOptions } from './worker/worker';

export function isOfMachines(act: { readonly kind: string }): act is MachineAct {
  return act.kind in OF_MACHINES;
}

/** The workers of a world, as they come and go. */
export class Machines {
  private readonly workers: SimulatedWorker[] = [];

  constructor(private readonly options: Omit<WorkerOptions, 'name'>) {}

  add(): void {
    const name = `worker ${this.workers.length + 1}`;
    this.workers.push(new SimulatedWorker({ ...this.options, name }));
  }

  /** One that polls. */
  get any(): SimulatedWorker | undefined {
    return this.workers.find(({ polls }) => polls);
  }

  /** @returns whether there was something to do it to */
  do(act: MachineAct, worker: SimulatedWorker | undefined): boolean {
    const { clock, server } = this.options;
    if (act.kind === 'server away') server.goAway(act.ms);
    else if (worker === undefined) return false;
    else if (act.kind === 'freeze') return worker.freeze(act.ms, act.suspended);
    else if (act.kind === 'lose') worker.loses = act.what;
    else if (act.kind === 'break') worker.breaks = act.what;
    else if (act.kind === 'wrong clock') worker.clockError = act.ms;
    else {
      if (worker.state === 'dead') return false;
      if (act.kind === 'kill') worker.kill();
      else worker.stop();
      clock.after(act.backAfterMs, () => this.add());
    }
    return true;
  }

  killAll(): void {
    for (const worker of this.workers) worker.kill();
  }
}
