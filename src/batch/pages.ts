import { type BatchItem, MAX_PAGE_BYTES, MAX_PAGE_ITEMS } from '../contract/batch';
import type { BatchPage } from '../contract/batch-workflows';
import { jsonBytes } from './json-size';
import { inRounds, type Lane, lanesInTurns } from './lanes';

/** Bytes of a page's JSON beside its items: `{"number":100000,"after":99999,"followedBy":false,"items":[]}` and room. */
const FRAME_BYTES = 100;

/**
 * Cuts a batch into pages of at most `MAX_PAGE_ITEMS` items and `MAX_PAGE_BYTES` bytes as JSON. All items of a job are in
 * one page; where they don't fit, they make a chain of pages of their own, numbered one after the other.
 *
 * An item that is larger than a page by itself is a page alone. The largest there can be, 256 KiB of prompt whose every
 * byte is written as six (`\u0001`), takes 1.5 MiB, and a payload may have 2 MiB.
 *
 * Pages are made as they are asked for, and hold the items that were given: a large batch needs no second copy. The same
 * items in the same order always make the same pages.
 */
export function* cutPages(items: readonly BatchItem[]): Generator<BatchPage, void, undefined> {
  let number = 0;
  let open: Fill = emptyFill();
  for (const lane of lanesInTurns(items)) {
    const parts = cutLane(lane);
    const [whole] = parts;
    if (whole === undefined || parts.length > 1) {
      for (const [index, part] of parts.entries()) {
        number += 1;
        const after = index === 0 ? null : number - 1;
        yield { number, after, followedBy: index < parts.length - 1, items: part.items };
      }
      continue;
    }
    if (!fits(open, whole.items.length, whole.bytes)) {
      number += 1;
      yield { number, after: null, followedBy: false, items: inRounds(open.lanes) };
      open = emptyFill();
    }
    open.lanes.push(whole.items);
    open.items += whole.items.length;
    open.bytes += whole.bytes;
  }
  if (open.items > 0) {
    yield { number: number + 1, after: null, followedBy: false, items: inRounds(open.lanes) };
  }
}

/** A page in the making. */
interface Fill {
  readonly lanes: Lane[];
  items: number;
  bytes: number;
}

function emptyFill(): Fill {
  return { lanes: [], items: 0, bytes: FRAME_BYTES };
}

/** Whether so much more fits; whatever comes first does, since it can't be made smaller. */
function fits(
  page: { readonly items: number; readonly bytes: number },
  items: number,
  bytes: number,
): boolean {
  if (page.items === 0) return true;
  return page.items + items <= MAX_PAGE_ITEMS && page.bytes + bytes <= MAX_PAGE_BYTES;
}

interface LanePart {
  readonly items: BatchItem[];
  bytes: number;
}

/** A lane as it fits into pages: one part, or several, each of which fills a page as far as it goes. */
function cutLane(lane: Lane): LanePart[] {
  const parts: LanePart[] = [];
  for (const item of lane) {
    // With the comma behind it.
    const bytes = jsonBytes(item) + 1;
    const last = parts.at(-1);
    if (last !== undefined && fits({ items: last.items.length, bytes: FRAME_BYTES + last.bytes }, 1, bytes)) {
      last.items.push(item);
      last.bytes += bytes;
    } else {
      parts.push({ items: [item], bytes });
    }
  }
  return parts;
}
