// For `node --import`: a worker whose pages look every second, and not every three minutes, whether all is there.
import batch from '../../dist/activities/batch.js';

batch.LOOK_EVERY_MS = 1_000;
