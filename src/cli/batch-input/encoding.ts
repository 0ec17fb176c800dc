import { isUtf8 } from 'node:buffer';
import type { ProblemList } from '../../client/batch/problem-list';
import type { LineBlock } from './line-blocks';

/** Reports each line that is not UTF-8: a decoder would put a replacement for what the message says. */
export function checkEncoding({ firstLine, bytes }: LineBlock, problems: ProblemList): void {
  if (isUtf8(bytes)) return;
  let start = 0;
  for (let line = firstLine; start < bytes.length; line += 1) {
    const lineFeed = bytes.indexOf('\n', start);
    const end = lineFeed < 0 ? bytes.length : lineFeed + 1;
    if (!isUtf8(bytes.subarray(start, end))) {
      problems.add(line, 'is not UTF-8; save the file as UTF-8, in which messages are sent');
    }
    start = end;
  }
}
