import { readFileSync } from 'node:fs';
import path from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils';
import type { HistoryEvent } from '../../../tools/lib/history-cost';

export const FOLDER = path.join(__dirname, 'histories');

/** Returns a recorded history as a client receives it from the Temporal server. */
export function recordedHistory(release: string, name: string) {
  const json: unknown = JSON.parse(readFileSync(path.join(FOLDER, release, `${name}.json`), 'utf8'));
  const { workflowId } = json as { readonly workflowId: string };
  return { workflowId, events: historyFromJSON(json).events ?? [] };
}

export function recordedEvents(release: string, name: string): readonly HistoryEvent[] {
  return recordedHistory(release, name).events;
}
