/**
 * Simulates how often a turn is polled and how late its end is seen, by the schedule of this project and by those of
 * others: `npm run bench:cadence`. It takes seconds, needs no server, and gives the same figures on each run: it prints
 * the table and writes it into docs/performance.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { simulate } from './cadence/simulate';
import { cadenceTable, PAGE_PATH, withTable } from './cadence/tables';

const table = cadenceTable(simulate());
console.log(table);
writeFileSync(PAGE_PATH, withTable(readFileSync(PAGE_PATH, 'utf8'), table));
