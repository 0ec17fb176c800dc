import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils';
import type { HistoryEvent } from '../../../tools/lib/history-cost';
import { RELEASES, recordedReleases } from '../../releases/releases';

/** The workflows of another team, whose histories have names that begin with `parent-`. */
export const CALLERS = path.join(__dirname, '../callers.ts');

const folderOf = (release: string) => path.join(RELEASES, release, 'histories');

/** The release and the name of each recorded history. */
export const RECORDED = recordedReleases().flatMap((release) =>
  readdirSync(folderOf(release)).map((file) => [release, path.basename(file, '.json')] as const),
);

/** The newest release, whose histories show the current cost of a follow-up. */
export const NEWEST_RELEASE =
  recordedReleases()
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .at(-1) ?? '';

/** Returns a recorded history as a client receives it from the Temporal server. */
export function recordedHistory(release: string, name: string) {
  const json: unknown = JSON.parse(readFileSync(path.join(folderOf(release), `${name}.json`), 'utf8'));
  const { workflowId } = json as { readonly workflowId: string };
  return { workflowId, events: historyFromJSON(json).events ?? [] };
}

export function recordedEvents(release: string, name: string): readonly HistoryEvent[] {
  return recordedHistory(release, name).events;
}

/** Returns the type of the workflow that has a history. */
export function workflowTypeOf([start]: readonly HistoryEvent[]): string {
  return start?.workflowExecutionStartedEventAttributes?.workflowType?.name ?? '';
}
