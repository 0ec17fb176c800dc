import { readFileSync } from 'node:fs';
import path from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils';
import type { HistoryEvent } from '../../../bench/history-cost';

/** The events of a recorded history, as a client gets them from the server. */
export function recordedEvents(release: string, name: string): readonly HistoryEvent[] {
  const file = path.join(__dirname, 'histories', release, `${name}.json`);
  return historyFromJSON(JSON.parse(readFileSync(file, 'utf8'))).events ?? [];
}
