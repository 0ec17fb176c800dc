import { defineSearchAttributeKey } from '@temporalio/common';
import { MAX_ATTRIBUTE_CHARACTERS, truncate } from '../core/text';
import type { SearchAttributeName } from '../core/names';

/** A search attribute and its value. */
export type Keyword = ReturnType<typeof keyword>;

/** @param text bounded, because a longer one can end a workflow (measured) */
export function keyword(name: SearchAttributeName, text: string) {
  return {
    key: defineSearchAttributeKey(name, 'KEYWORD'),
    value: truncate(text, MAX_ATTRIBUTE_CHARACTERS),
  };
}
