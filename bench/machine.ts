import { availableParallelism, loadavg, totalmem } from 'node:os';
import sdk from '@temporalio/worker/package.json';
import type { TemporalCli } from '../dev/temporal-cli';

/** What the figures depend on; nothing that names the machine. */
export interface MachineFacts {
  readonly cores: number;
  readonly memoryGib: number;
  readonly platform: string;
  readonly node: string;
  readonly temporalServer: string;
  readonly temporalSdk: string;
  /** Processes that wanted a core before the bench began, over the last minute: much above 0, it was not alone. */
  readonly loadBefore: number;
}

export function machineFacts({ version }: TemporalCli): MachineFacts {
  return {
    cores: availableParallelism(),
    memoryGib: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    temporalServer: version.server,
    temporalSdk: sdk.version,
    loadBefore: loadavg()[0] ?? NaN,
  };
}

export function describeMachine(facts: MachineFacts): string {
  const { cores, memoryGib, platform, node, temporalServer, temporalSdk, loadBefore } = facts;
  return `${cores} cores, ${memoryGib} GiB, ${platform}; Node ${node}; Temporal dev server ${temporalServer} in memory, SDK ${temporalSdk}; load before ${loadBefore.toFixed(1)}`;
}
