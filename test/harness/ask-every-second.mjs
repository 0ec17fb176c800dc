// For `node --import`: a worker that asks the server every second, and not every minute, what is open.
import openWorkflows from '../../dist/worker/open-workflows.js';

openWorkflows.ASK_EVERY_MS = 1_000;
