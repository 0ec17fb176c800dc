import { removeDoors } from './set-up';

export default removeDoors;
