"""What may be done to a batch, or asked of a model, beside the likelihood. All through the seam that every architecture keeps."""
