import type { ProblemList } from '../../client/batch/problem-list';
import { isRecord, typeName } from '../../contract/field-reader';
import { fieldsOfLine, type LineFields } from './fields';
import type { LineBlock } from './line-blocks';

/** Takes the items of JSON Lines (jsonlines.org): one object a line, blank lines between them. */
export function readJsonLines(
  { firstLine, bytes }: LineBlock,
  problems: ProblemList,
  take: (line: number, fields: LineFields) => void,
): void {
  for (const [index, text] of bytes.toString().split('\n').entries()) {
    if (text.trim() === '') continue;
    const line = firstLine + index;
    const value = parseLine(text);
    if (value instanceof SyntaxError) {
      problems.add(line, `is no JSON (${value.message}); JSON Lines has one whole object a line`);
    } else if (!isRecord(value)) {
      problems.add(line, `must be one JSON object, not ${typeName(value)}; JSON Lines has one object a line`);
    } else {
      take(
        line,
        fieldsOfLine(value, (problem) => {
          problems.add(line, problem);
        }),
      );
    }
  }
}

function parseLine(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}
