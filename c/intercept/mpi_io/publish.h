/* How what ranks wrote becomes a file: in the pool, or, where the pool fails, the real one. Every rank calls these
 * functions; all get the same result. They return MPI_SUCCESS or the number of an error. */
#ifndef JUNCTURA_MPI_IO_PUBLISH_H
#define JUNCTURA_MPI_IO_PUBLISH_H

#include "file.h"

/* Offers an array whose pieces are in one collective write, where the ranks' claims are one array. `is_offered` of the
 * file is the answer. */
int jmpi_publish_at_once(open_file *file, const array_claim *claim, const void *data, uint64_t bytes);

/* Offers the file as it is when it is closed: as an array, or as bytes; nothing where no rank has changed it. */
int jmpi_publish(open_file *file, bool has_changed);

/* Makes what each rank wrote readable by the others. */
int jmpi_exchange(open_file *file);
/* Receives what others have made readable. */
int jmpi_receive_exchanged(open_file *file);
/* Removes what was exchanged. */
void jmpi_forget_exchanged(open_file *file);

/* Writes everything into the real file, which is opened by all ranks; its handle is put into `real`. */
int jmpi_move_to_real(open_file *file, int amode);

/* Reads what this rank can see of the file. A number of the C library. */
int jmpi_read_seen(open_file *file, uint64_t offset, uint64_t bytes, unsigned char *to);

#endif
