import { FAULT_NAMES } from './faults';
import type { Sandbox } from './sandbox';
import { SEED_JOBS } from './seed';

/**
 * What the program prints at its start. It shows the key on purpose: the sandbox made it a moment ago, and it opens
 * nothing but this sandbox. A key that came from outside (`ownKey` false) is not shown.
 */
export function banner(sandbox: Sandbox, ownKey: boolean): string {
  const { baseUrl, controlUrl, apiKey, readOnlyApiKey } = sandbox;
  const faults = sandbox.faults().map(({ name, projectId, jobId, left }) => {
    const times = left === null ? '' : `, ${left} times`;
    return `${name} (${projectId}/${jobId}${times})`;
  });
  return `Sandbox agent service on ${baseUrl}

${jobTable(sandbox)}

The worker needs these two. The key is a throwaway of this sandbox and opens nothing else, so it may be shown:

  export AGENT_API_BASE_URL=${baseUrl}
  export AGENT_API_KEY=${ownKey ? apiKey : '"$SANDBOX_API_KEY"'}

A key that may only read: ${readOnlyApiKey}

With a worker running, send a message:

  npm run starter -- send --project docs --job job-1 --prompt "Mention the new option in the guide."

Faults switched on: ${faults.join(', ') || 'none'} (${FAULT_NAMES.length} are known: --list-faults)
Journal, jobs and faults by HTTP: curl ${controlUrl}/sandbox
Ctrl-C ends it. Every request gets a line below.
`;
}

function jobTable(sandbox: Sandbox): string {
  const rows = SEED_JOBS.map(({ projectId, id, story }) => {
    const { job } = sandbox.job({ projectId, jobId: id });
    return [projectId, id, job.status, job.prLink ?? '-', story];
  });
  const table = [['PROJECT', 'JOB', 'STATUS', 'PULL REQUEST', 'A MESSAGE TO IT'], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table
    .map((row) => '  ' + row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n');
}
