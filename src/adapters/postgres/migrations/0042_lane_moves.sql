-- works with: 0036_private_endpoints.sql

-- Which cell (independent deployment with its own database) gives the lane's nonces, and the moves by which the lane left
-- and arrives. `carried`: the last page of request ids that was taken over. `still_nonce`: next nonce of a lane that
-- another cell serves: it cannot change until the lane arrives here, whatever a writer believes.
ALTER TABLE fencepost.lane
  ADD COLUMN place text COLLATE "C" NOT NULL DEFAULT 'HERE',
  ADD COLUMN left_by uuid,
  ADD COLUMN arrives_by uuid,
  ADD COLUMN carried text COLLATE "C",
  ADD COLUMN still_nonce bigint,
  ADD CONSTRAINT lane_place CHECK (
    CASE place
      WHEN 'HERE' THEN left_by IS NULL AND carried IS NULL AND still_nonce IS NULL
      WHEN 'LEAVING' THEN left_by IS NOT NULL AND carried IS NULL AND still_nonce IS NULL
      WHEN 'LEFT' THEN left_by IS NOT NULL AND carried IS NULL AND next_nonce IS NOT DISTINCT FROM still_nonce
      WHEN 'EXPECTED' THEN arrives_by IS NOT NULL AND next_nonce IS NOT DISTINCT FROM still_nonce
      ELSE false
    END
  );
