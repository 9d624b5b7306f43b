import { graphics } from 'systeminformation';

// A process of its own, started once by `inventory.ts`: lists the graphics adapters, says so, ends.
const { controllers } = await graphics();
process.send?.({
  controllers: controllers.map(({ vendor, model, busAddress }) => ({ vendor, model, busAddress })),
});
process.on('disconnect', () => process.exit(0));
