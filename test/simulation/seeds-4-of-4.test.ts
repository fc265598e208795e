import { playQuarter } from "../support/simulation/quarter.ts";

playQuarter(4);
